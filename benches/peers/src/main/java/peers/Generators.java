package peers;

import com.sankuai.inf.leaf.segment.SegmentIDGenImpl;
import com.sankuai.inf.leaf.segment.dao.impl.IDAllocDaoImpl;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import javax.sql.DataSource;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;

/** Opens each generator as a supplier of ids. A negative one means that there was no id. */
final class Generators {
    private Generators() {}

    /** One by the name that the command line uses. */
    static LongSupplier open(String name, DataSource database) {
        return switch (name) {
            case "atomic" -> new AtomicLong()::incrementAndGet;
            case "leaf" -> leaf(database, "inprocess");
            case "cosid" -> cosid(database, "inprocess", IdSegmentDistributor.DEFAULT_STEP);
            case "cosid-1000" -> cosid(database, "inprocess1000", 1000);
            case "idgen-lease" -> idgenLease(10_000);
            case "idgen-lease-million" -> idgenLease(1_000_000);
            default -> throw new IllegalArgumentException("no generator is called " + name);
        };
    }

    /** IdGen's Java helper, which is compiled apart: see src/lease. */
    private static LongSupplier idgenLease(long count) {
        try {
            return (LongSupplier) Class.forName("IdGenLease")
                    .getConstructor(long.class).newInstance(count);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("IdGen's Java helper is not there", error);
        }
    }

    /** Leaf's two buffers on the row {@code key} of leaf_alloc. */
    static LongSupplier leaf(DataSource database, String key) {
        var leaf = leafCore(database);
        return () -> leaf.get(key).getId();
    }

    static SegmentIDGenImpl leafCore(DataSource database) {
        var leaf = new SegmentIDGenImpl();
        leaf.setDao(new IDAllocDaoImpl(database));
        leaf.init();
        return leaf;
    }

    /** CosId's chain of segments on the row {@code peers.name} of cosid; all else by default. */
    static LongSupplier cosid(DataSource database, String name, long step) {
        return new SegmentChainId(new SqlDistributor(database, name, step))::generate;
    }

    /**
     * Stands for the distributor of cosid-jdbc, which could not be had: one transaction
     * that moves the highest id by the step and reads it back. The chain calls it for
     * many segments at once, so it is on the way of few ids.
     */
    private record SqlDistributor(DataSource database, String name, long step)
            implements IdSegmentDistributor {
        @Override
        public String getNamespace() {
            return "peers";
        }

        @Override
        public String getName() {
            return name;
        }

        @Override
        public long getStep() {
            return step;
        }

        @Override
        public long nextMaxId(long ids) {
            try (var connection = database.getConnection()) {
                connection.setAutoCommit(false);
                try (var move = connection.prepareStatement(
                        "UPDATE cosid SET last_max_id = last_max_id + ?,"
                                + " last_fetch_time = UNIX_TIMESTAMP() WHERE name = ?")) {
                    move.setLong(1, ids);
                    move.setString(2, getNamespacedName());
                    if (move.executeUpdate() != 1) {
                        throw new IllegalStateException("no row " + getNamespacedName());
                    }
                }
                try (var read = connection.prepareStatement(
                        "SELECT last_max_id FROM cosid WHERE name = ?")) {
                    read.setString(1, getNamespacedName());
                    try (var rows = read.executeQuery()) {
                        rows.next();
                        long highest = rows.getLong(1);
                        connection.commit();
                        return highest;
                    }
                }
            } catch (SQLException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
