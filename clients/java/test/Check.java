import java.util.Objects;

/** What the tests say when something is not as it should be. */
final class Check {
    private Check() {}

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object wanted, Object got) {
        that(Objects.equals(wanted, got), "wanted " + wanted + ", got " + got);
    }
}
