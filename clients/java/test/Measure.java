import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;

/** How fast LocalIds hands out ids, beside an AtomicLong: the best of five, 1 and 4 threads. */
public final class Measure {
    private static final int TIMES = 5_000_000;

    private interface Source {
        long next() throws Exception;
    }

    private Measure() {}

    public static void main(String[] args) throws Exception {
        AtomicLong counter = new AtomicLong();
        try (LocalIds ids = LocalIds.of(List.of(System.getenv("CLIENTS_NODE")), "event")
                .count(10_000_000).start()) {
            for (int threads : new int[] {1, 4}) {
                say("AtomicLong", threads, counter::getAndIncrement);
                say("LocalIds", threads, ids::next);
            }
        }
    }

    private static void say(String name, int threads, Source source) throws Exception {
        double best = 0;
        for (int round = 0; round < 5; round++) {
            best = Math.max(best, rate(threads, source));
        }
        System.out.printf("%s, %d threads: %.1f million/s%n", name, threads, best / 1e6);
    }

    private static double rate(int threads, Source source) throws Exception {
        CyclicBarrier both = new CyclicBarrier(threads + 1);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                try {
                    both.await();
                    for (int at = 0; at < TIMES; at++) {
                        source.next();
                    }
                    both.await();
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            }).start();
        }
        both.await();
        long begun = System.nanoTime();
        both.await();
        return 1e9 * threads * TIMES / (System.nanoTime() - begun);
    }
}
