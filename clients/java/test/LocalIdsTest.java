import idgen.thrift.IdGenException;
import idgen.thrift.IdGenService;
import idgen.thrift.RangeLease;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * Tests LocalIds: against real nodes, and against a stand-in that does as it is told. Needs
 * CLIENTS_NODE and CLIENTS_PROGRAM, as scripts/test-clients.sh sets them.
 */
public final class LocalIdsTest {
    private static final String NODE = System.getenv("CLIENTS_NODE");
    private static final String NOBODY = "127.0.0.1:1";
    private static final long MS = 1_000_000;

    private interface Answer {
        RangeLease to(int call) throws Exception;
    }

    private interface Test {
        void run() throws Exception;
    }

    private LocalIdsTest() {}

    public static void main(String[] args) throws Exception {
        run("many threads", LocalIdsTest::manyThreads);
        run("a restart of the node", LocalIdsTest::aRestart);
        run("the life counts from when the call was sent", LocalIdsTest::theLife);
        run("a lease in reserve expires too", LocalIdsTest::reserveExpires);
        run("the step", LocalIdsTest::theStep);
        run("the next lease comes in the background", LocalIdsTest::background);
        run("the next node takes over", LocalIdsTest::failOver);
        run("a node that does not answer is passed over", LocalIdsTest::silentNode);
        run("what no retry helps is raised at once", LocalIdsTest::raisedAtOnce);
        run("what a retry may help is raised in the end", LocalIdsTest::raisedInTheEnd);
        run("after a failure it goes on", LocalIdsTest::goesOn);
        run("onConnect comes before the calls", LocalIdsTest::onConnect);
        run("the end", LocalIdsTest::theEnd);
    }

    private static void run(String name, Test test) throws Exception {
        System.out.println(name);
        test.run();
    }

    private static void manyThreads() throws Exception {
        int threads = 16;
        int each = 20_000;
        long[][] found = new long[threads][each];
        List<Throwable> failed = new ArrayList<>();
        try (LocalIds ids = LocalIds.of(List.of(NODE), "event").count(2000).start()) {
            List<Thread> running = new ArrayList<>();
            for (long[] into : found) {
                Thread thread = new Thread(() -> {
                    try {
                        for (int i = 0; i < each; i++) {
                            into[i] = ids.next();
                        }
                    } catch (Exception error) {
                        synchronized (failed) {
                            failed.add(error);
                        }
                    }
                });
                thread.start();
                running.add(thread);
            }
            for (Thread thread : running) {
                thread.join();
            }
        }
        Check.equal(List.of(), failed);
        Set<Long> all = new HashSet<>();
        for (long[] part : found) {
            for (int i = 0; i < each; i++) {
                Check.that(i == 0 || part[i - 1] < part[i], "one thread's ids do not ascend");
                Check.that(all.add(part[i]), part[i] + " twice");
            }
        }
    }

    private static void aRestart() throws Exception {
        Path data = Files.createTempDirectory("idgen-java");
        int thrift = freePort();
        int http = freePort();
        Process node = start(data, thrift, http);
        Set<Long> all = new HashSet<>();
        try {
            new ProcessBuilder(program(), "type", "add", "event", "--mode", "segment",
                    "--url", "http://127.0.0.1:" + http, "--data", data.toString())
                    .redirectErrorStream(true).redirectOutput(new File("/dev/null")).start()
                    .waitFor();
            List<String> nodes = List.of("127.0.0.1:" + thrift);
            try (LocalIds ids = LocalIds.of(nodes, "event").count(100).timeoutMs(3000).start()) {
                take(ids, 1, all);
                node.destroyForcibly().waitFor();
                // What is leased goes on without the node, up to its end.
                take(ids, 99, all);
                boolean ended = false;
                try {
                    // Perhaps one more lease was there already.
                    take(ids, 101, all);
                } catch (TException error) {
                    ended = true;
                }
                Check.that(ended, "ids without a lease");
                node = start(data, thrift, http);
                take(ids, 300, all);
            }
        } finally {
            node.destroyForcibly().waitFor();
            try (var files = Files.walk(data)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }

    private static void theLife() throws Exception {
        AtomicLong now = new AtomicLong();
        try (StandIn node = new StandIn(call -> {
                    now.addAndGet(600 * MS);
                    return new RangeLease(100 * (call + 1), 10, 1, 1000);
                });
                LocalIds ids = node.ids().clock(now::get).start()) {
            Check.equal(100L, ids.next());
            now.addAndGet(375 * MS);
            Check.equal(101L, ids.next());
            // 625 ms after the answer, but 1225 ms after the call.
            now.addAndGet(250 * MS);
            Check.equal(200L, ids.next());
        }
    }

    private static void reserveExpires() throws Exception {
        AtomicLong now = new AtomicLong();
        try (StandIn node = new StandIn(call -> new RangeLease(100 * (call + 1), 2, 1, 1000));
                LocalIds ids = node.ids().clock(now::get).start()) {
            Check.equal(100L, ids.next());
            Check.equal(101L, ids.next());
            // The one in reserve is on its way, asked for at time 0.
            node.untilAsked(2);
            now.addAndGet(1000 * MS);
            Check.equal(300L, ids.next());
        }
    }

    private static void theStep() throws Exception {
        try (StandIn node = new StandIn(call -> new RangeLease(5 + 300 * call, 3, 7, 60_000));
                LocalIds ids = node.ids().start()) {
            for (long wanted : new long[] {5, 12, 19, 305, 312}) {
                Check.equal(wanted, ids.next());
            }
        }
    }

    private static void background() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        try (StandIn node = new StandIn(call -> {
                    if (call == 1) {
                        gate.await();
                    }
                    return new RangeLease(100 * (call + 1), 10, 1, 60_000);
                });
                LocalIds ids = node.ids().attemptMs(30_000).timeoutMs(30_000).start()) {
            for (long wanted = 100; wanted < 106; wanted++) {
                Check.equal(wanted, ids.next());
            }
            node.untilAsked(2);
            // Asked for, and not there: the rest of the first goes out meanwhile.
            for (long wanted = 106; wanted < 110; wanted++) {
                Check.equal(wanted, ids.next());
            }
            gate.countDown();
            Check.equal(200L, ids.next());
        }
    }

    private static void failOver() throws Exception {
        try (StandIn down = new StandIn(call -> {
                    throw unavailable();
                });
                LocalIds ids = LocalIds.of(List.of(NOBODY, down.address, NODE), "event")
                        .count(100).start()) {
            take(ids, 1000, new HashSet<>());
            Check.that(down.asked.get() > 0, "the node that is down was not asked");
        }
    }

    private static void silentNode() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
                LocalIds ids = LocalIds
                        .of(List.of("127.0.0.1:" + silent.getLocalPort(), NODE), "event")
                        .attemptMs(200).start()) {
            Check.that(ids.next() > 0, "no id");
        }
    }

    private static void raisedAtOnce() throws Exception {
        String[][] cases = {{"no-such-type", "UNKNOWN_TYPE", null},
            {"order", "INVALID_ARGUMENT", "idType"}};
        for (String[] one : cases) {
            // A wait for the end of this timeout would be seen.
            try (LocalIds ids =
                    LocalIds.of(List.of(NODE), one[0]).timeoutMs(1_000_000_000).start()) {
                throw new AssertionError("not refused, but " + ids.next());
            } catch (IdGenException error) {
                Check.equal(one[1], error.code);
                Check.equal(one[2], error.field);
            }
        }
    }

    private static void raisedInTheEnd() throws Exception {
        try (StandIn down = new StandIn(call -> {
                    throw unavailable();
                });
                LocalIds ids = down.ids().timeoutMs(300).start()) {
            throw new AssertionError("an id from nowhere: " + ids.next());
        } catch (IdGenException error) {
            Check.equal("UNAVAILABLE", error.code);
        }
    }

    private static void goesOn() throws Exception {
        try (StandIn node = new StandIn(call -> {
                    if (call < 3) {
                        throw unavailable();
                    }
                    return new RangeLease(100, 10, 1, 60_000);
                });
                LocalIds ids = node.ids().timeoutMs(30_000).start()) {
            Check.equal(100L, ids.next());
        }
    }

    private static void onConnect() throws Exception {
        List<String> seen = new ArrayList<>();
        try (LocalIds ids = LocalIds.of(List.of(NODE), "event")
                .onConnect(client -> seen.add(client.echo("me", "hello").value)).start()) {
            ids.next();
        }
        Check.equal(List.of("hello"), seen);
    }

    private static void theEnd() throws Exception {
        LocalIds ids = LocalIds.of(List.of(NODE), "event").start();
        ids.next();
        ids.close();
        ids.close();
        try {
            throw new AssertionError("an id after the end: " + ids.next());
        } catch (IllegalStateException error) {
            Check.equal("closed", error.getMessage());
        }
    }

    private static void take(LocalIds ids, int count, Set<Long> all) throws Exception {
        for (int i = 0; i < count; i++) {
            long id = ids.next();
            Check.that(all.add(id), id + " twice");
        }
    }

    private static IdGenException unavailable() {
        return new IdGenException("UNAVAILABLE", "as told", true);
    }

    private static String program() {
        return System.getenv("CLIENTS_PROGRAM");
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }

    /** A node, when it is ready. */
    private static Process start(Path data, int thrift, int http) throws Exception {
        Process node = new ProcessBuilder(program(), "serve", "--data", data.toString(),
                "--thrift", "127.0.0.1:" + thrift, "--http", "127.0.0.1:" + http)
                .redirectErrorStream(true).start();
        BufferedReader said = new BufferedReader(new InputStreamReader(node.getInputStream()));
        for (String line; (line = said.readLine()) != null; ) {
            if (line.startsWith("  admin ")) {
                return node;
            }
        }
        throw new AssertionError("the node did not start");
    }

    /** A node whose leaseRange is what it is told, by the number of the call from 0. */
    private static final class StandIn implements AutoCloseable {
        final AtomicInteger asked = new AtomicInteger();
        private final Semaphore calls = new Semaphore(0);
        private final TServer server;
        final String address;

        StandIn(Answer answer) throws Exception {
            TServerSocket listener =
                    new TServerSocket(new InetSocketAddress("127.0.0.1", 0));
            address = "127.0.0.1:" + listener.getServerSocket().getLocalPort();
            IdGenService.Iface node = (IdGenService.Iface) Proxy.newProxyInstance(
                    StandIn.class.getClassLoader(), new Class<?>[] {IdGenService.Iface.class},
                    (proxy, method, arguments) -> {
                        int call = asked.getAndIncrement();
                        calls.release();
                        return answer.to(call);
                    });
            server = new TThreadPoolServer(new TThreadPoolServer.Args(listener)
                    .processor(new IdGenService.Processor<>(node))
                    .transportFactory(new TFramedTransport.Factory())
                    .protocolFactory(new TCompactProtocol.Factory())
                    .stopTimeoutVal(0));
            Thread thread = new Thread(server::serve);
            thread.setDaemon(true);
            thread.start();
        }

        LocalIds.Settings ids() {
            return LocalIds.of(List.of(address), "event");
        }

        /** Waits for so many calls. */
        void untilAsked(int times) throws InterruptedException {
            calls.acquire(times);
        }

        @Override
        public void close() {
            server.stop();
        }
    }
}
