import idgen.thrift.IdGenException;
import idgen.thrift.RangeLease;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.transport.TTransportException;

/**
 * Ids handed out in this process, from leases of a segment type whose ids are in order.
 *
 * <pre>try (LocalIds ids = LocalIds.of(List.of("10.0.0.1:5900"), "event").start()) {
 *     long id = ids.next();
 * }</pre>
 *
 * <p>For any number of threads. A node is asked once per lease, in the background and before the
 * ids run out. An id is handed out once. What is left of a lease when it expires, or at the end,
 * is lost. The way of one id takes no lock: an index in the lease is counted up, and whoever got
 * one that is still in the lease, before the lease expired, has its id.
 */
public final class LocalIds implements AutoCloseable {
    private final Settings set;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final Thread fetcher = new Thread(this::fetch, "idgen-leases");
    /** Whether a lease is being fetched, or should be. */
    private final AtomicBoolean wanted = new AtomicBoolean();
    private volatile Lease lease = Lease.NONE;
    // Under the lock:
    private Lease spare;
    private TException error;
    private long failures;
    private boolean closed;

    private LocalIds(Settings set) {
        this.set = set;
        fetcher.setDaemon(true);
        fetcher.start();
    }

    /** The settings, with what is usual, to be changed before start(). */
    public static Settings of(List<String> nodes, String type) {
        return new Settings(nodes, type);
    }

    /**
     * The next id.
     *
     * @throws TException if there was none within the timeout; at once, if asking again would not
     *     help
     * @throws IllegalStateException after close()
     */
    public long next() throws TException, InterruptedException {
        while (true) {
            Lease held = lease;
            long index = held.taken.getAndIncrement();
            // In this order: an id counts as handed out when its lease is seen to be alive.
            if (index < held.count && set.clock.getAsLong() - held.expires < 0) {
                if (index >= held.low && !wanted.get()) {
                    wantAhead(held);
                }
                return held.first + index * held.step;
            }
            renew(held);
        }
    }

    /** Ends the background thread. Ids that were not handed out are lost. */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            lease = Lease.NONE;
            spare = null;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        fetcher.interrupt();
    }

    private void wantAhead(Lease held) {
        lock.lock();
        try {
            if (lease == held && spare == null && wanted.compareAndSet(false, true)) {
                changed.signalAll();
            } else if (spare != null) {
                // There is one: nobody need look again while this lease lasts.
                held.low = Long.MAX_VALUE;
            }
        } finally {
            lock.unlock();
        }
    }

    /** Returns when another lease than `used` is in use. */
    private void renew(Lease used) throws TException, InterruptedException {
        lock.lockInterruptibly();
        try {
            long seen = failures;
            long left = TimeUnit.MILLISECONDS.toNanos(set.timeoutMs);
            while (true) {
                if (closed) {
                    throw new IllegalStateException("closed");
                }
                if (lease != used) {
                    return;
                }
                if (spare != null) {
                    lease = spare;
                    spare = null;
                    return;
                }
                if (failures != seen && !mayPass(error)) {
                    throw error;
                }
                if (left <= 0) {
                    if (failures != seen) {
                        throw error;
                    }
                    throw new TTransportException(TTransportException.TIMED_OUT,
                            "no lease of " + set.type + " within " + set.timeoutMs + " ms");
                }
                wanted.set(true);
                changed.signalAll();
                left = changed.awaitNanos(left);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Brings a lease whenever one is wanted, until close(). */
    private void fetch() {
        long pauseMs = 50;
        // One round over the nodes at a time: the pauses between rounds are made here, where
        // close() ends them.
        try (Nodes nodes = new Nodes(set.nodes, set.attemptMs, set.nodes.size(), set.onConnect)) {
            while (true) {
                lock.lock();
                try {
                    while (!wanted.get() && !closed) {
                        changed.await();
                    }
                    if (closed) {
                        return;
                    }
                } finally {
                    lock.unlock();
                }
                Lease got = null;
                TException failed = null;
                try {
                    got = nodes.call(client -> {
                        // The life of a lease counts from before it is asked for: who counts
                        // from the answer uses ids that the cluster has already given up.
                        long sent = set.clock.getAsLong();
                        return new Lease(client.leaseRange(set.type, set.count, set.ttlMs), sent);
                    });
                } catch (TException raised) {
                    failed = raised;
                } catch (RuntimeException raised) {
                    failed = new TException(raised);
                }
                lock.lock();
                try {
                    if (got != null) {
                        pauseMs = 50;
                        spare = got;
                        wanted.set(false);
                        changed.signalAll();
                        continue;
                    }
                    error = failed;
                    failures++;
                    wanted.set(mayPass(failed));
                    changed.signalAll();
                    long left = TimeUnit.MILLISECONDS.toNanos(pauseMs);
                    while (left > 0 && !closed) {
                        left = changed.awaitNanos(left);
                    }
                } finally {
                    lock.unlock();
                }
                pauseMs = Math.min(2 * pauseMs, 1000);
            }
        } catch (InterruptedException ended) {
            // close() asked for it.
        }
    }

    /** Whether the same call may succeed later. */
    private static boolean mayPass(TException error) {
        if (error instanceof IdGenException) {
            return ((IdGenException) error).retriable;
        }
        return error instanceof TTransportException || error instanceof TProtocolException;
    }

    /** What a lease allows. */
    private static final class Lease {
        static final Lease NONE = new Lease(new RangeLease(0, 0, 1, 0), 0);

        final long first;
        final long step;
        final long count;
        final long expires;
        /** From this index on, the next lease is fetched. */
        volatile long low;
        final AtomicLong taken = new AtomicLong();

        Lease(RangeLease lease, long sent) {
            first = lease.first;
            step = lease.step;
            count = lease.count;
            low = count / 2;
            expires = sent + TimeUnit.MILLISECONDS.toNanos(lease.ttlMs);
        }
    }

    /** What LocalIds is to do. */
    public static final class Settings {
        private final List<String> nodes;
        private final String type;
        private long count = 10_000;
        private long ttlMs = 60_000;
        private long timeoutMs = 5_000;
        private int attemptMs = 2_000;
        private Nodes.Method<?> onConnect;
        private LongSupplier clock = System::nanoTime;

        private Settings(List<String> nodes, String type) {
            this.nodes = List.copyOf(nodes);
            this.type = type;
        }

        /** Ids per lease: what you need in some seconds. */
        public Settings count(long ids) {
            count = ids;
            return this;
        }

        /** How long a lease may live, 1 second to a day. */
        public Settings ttlMs(long ms) {
            ttlMs = ms;
            return this;
        }

        /** How long next() waits for a lease. */
        public Settings timeoutMs(long ms) {
            timeoutMs = ms;
            return this;
        }

        /** How long one node may take to connect, or to answer. */
        public Settings attemptMs(int ms) {
            attemptMs = ms;
            return this;
        }

        /** Called after each connecting: authenticate there, if your cluster wants a token. */
        public Settings onConnect(Nodes.Method<?> method) {
            onConnect = method;
            return this;
        }

        /** A monotonic clock in nanoseconds; System.nanoTime unless told. */
        Settings clock(LongSupplier nanos) {
            clock = nanos;
            return this;
        }

        /** Begins. The first lease is fetched with the first next(). */
        public LocalIds start() {
            return new LocalIds(this);
        }
    }
}
