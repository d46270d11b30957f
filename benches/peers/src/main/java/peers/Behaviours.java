package peers;

import java.util.function.LongSupplier;

/**
 * What a generator does that is no matter of speed. A run of {@code take} is one process of
 * an application; peers.py compares the ids of several.
 *
 * <pre>
 * take GENERATOR COUNT    prints so many ids, one a line, and ends
 * order GENERATOR COUNT   takes so many ids in turn from two generators that share nothing but
 *                         the database, as two processes do; prints how many were not larger
 *                         than the one before
 * </pre>
 */
public final class Behaviours {
    public static void main(String[] arguments) {
        var database = Database.open();
        String name = arguments[1];
        int count = Integer.parseInt(arguments[2]);
        var text = new StringBuilder();
        if (arguments[0].equals("take")) {
            LongSupplier ids = Generators.open(name, database);
            for (int i = 0; i < count; i++) {
                text.append(next(ids)).append('\n');
            }
        } else {
            LongSupplier[] both = {
                Generators.open(name, database), Generators.open(name, database)
            };
            int outOfOrder = 0;
            long last = Long.MIN_VALUE;
            for (int i = 0; i < count; i++) {
                long id = next(both[i % 2]);
                outOfOrder += id <= last ? 1 : 0;
                last = id;
            }
            text.append(outOfOrder).append('\n');
        }
        System.out.print(text);
        // The generators' own threads would keep the process.
        System.exit(0);
    }

    /** An id; asks again where there is none just now, as Leaf may say. */
    private static long next(LongSupplier ids) {
        while (true) {
            long id = ids.getAsLong();
            if (id >= 0) {
                return id;
            }
        }
    }
}
