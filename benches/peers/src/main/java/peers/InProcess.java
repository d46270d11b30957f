package peers;

import java.util.concurrent.CountDownLatch;
import java.util.function.LongSupplier;

/**
 * Takes ids of one generator in a loop, from several threads, and prints how many a second.
 * One generator per process, so that the compiler sees one kind of call in the loop.
 *
 * <p>Arguments: generator, threads, seconds of warm-up, seconds.
 */
public final class InProcess {
    /** How many ids are taken between two looks at the clock's flag. */
    private static final int STRETCH = 64;

    /** When the measured time began, of the clock in nanoseconds; 0 before it. */
    private static volatile long begin;
    private static volatile boolean ended;

    public static void main(String[] arguments) throws InterruptedException {
        String name = arguments[0];
        int threads = Integer.parseInt(arguments[1]);
        long warmUp = Math.round(Double.parseDouble(arguments[2]) * 1000);
        long measured = Math.round(Double.parseDouble(arguments[3]) * 1000);
        var database = name.equals("atomic") ? null : Database.open();
        LongSupplier ids = Generators.open(name, database);

        long[][] counts = new long[threads][];
        var done = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            int number = i;
            var thread = new Thread(() -> {
                counts[number] = take(ids);
                done.countDown();
            });
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(warmUp);
        begin = System.nanoTime();
        Thread.sleep(measured);
        ended = true;
        double seconds = (System.nanoTime() - begin) / 1e9;
        done.await();

        long taken = 0;
        long failed = 0;
        long longest = 0;
        for (long[] count : counts) {
            taken += count[0];
            failed += count[1];
            longest = Math.max(longest, count[2]);
        }
        System.out.printf(
                "{\"ids_per_s\":%.0f,\"errors\":%d,\"longest_stretch_us\":%.1f}%n",
                taken / seconds, failed, longest / 1e3);
        // The generators' own threads would keep the process.
        System.exit(0);
    }

    /** Ids, failures, and the nanoseconds of the longest stretch, all of the measured time. */
    private static long[] take(LongSupplier ids) {
        while (begin == 0) {
            stretch(ids);
        }
        long taken = 0;
        long failed = 0;
        long before = System.nanoTime();
        // The stretch that the measured time began in may have lasted.
        long longest = before - begin;
        while (!ended) {
            int got = stretch(ids);
            long now = System.nanoTime();
            taken += got;
            failed += STRETCH - got;
            longest = Math.max(longest, now - before);
            before = now;
        }
        return new long[] {taken, failed, longest};
    }

    private static int stretch(LongSupplier ids) {
        int got = 0;
        for (int i = 0; i < STRETCH; i++) {
            if (ids.getAsLong() >= 0) {
                got++;
            }
        }
        return got;
    }
}
