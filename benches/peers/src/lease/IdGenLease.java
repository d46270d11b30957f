import java.util.List;
import java.util.function.LongSupplier;

/**
 * IdGen's Java helper (clients/java) as a generator, with its settings by default but for
 * the length of a lease. In no package, as the helper is in none; run.sh compiles it where that
 * helper is there.
 */
public final class IdGenLease implements LongSupplier {
    private final LocalIds ids;

    /** With leases of so many ids. */
    public IdGenLease(long count) {
        ids = LocalIds.of(List.of(System.getenv("PEERS_THRIFT")), "segment").count(count).start();
    }

    @Override
    public long getAsLong() {
        try {
            return ids.next();
        } catch (Exception error) {
            return -1;
        }
    }
}
