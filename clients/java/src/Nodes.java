import idgen.thrift.IdGenException;
import idgen.thrift.IdGenService;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * One connection, to the first of the nodes that works; calls go on to the next node where one
 * does not answer. For one thread at a time, as every Thrift client.
 */
public final class Nodes implements AutoCloseable {
    /** What is to be done with a connected client. */
    public interface Method<T> {
        T call(IdGenService.Client client) throws TException;
    }

    private final List<String> nodes;
    private final int timeoutMs;
    private final int attempts;
    private final Method<?> onConnect;
    private int at;
    private int tried;
    private TTransport transport;
    private IdGenService.Client client;

    /** With 2 seconds to connect and for each answer, and 4 attempts. */
    public Nodes(List<String> nodes) {
        this(nodes, 2000, 4, null);
    }

    /**
     * @param nodes as "10.0.0.1:5900"
     * @param timeoutMs how long connecting, and each answer, may take
     * @param attempts how often a call is tried, over all nodes
     * @param onConnect called after each connecting, or null: authenticate there, if your
     *     cluster wants a token
     */
    public Nodes(List<String> nodes, int timeoutMs, int attempts, Method<?> onConnect) {
        if (nodes.isEmpty() || attempts < 1) {
            throw new IllegalArgumentException("no nodes, or no attempts");
        }
        this.nodes = List.copyOf(nodes);
        this.timeoutMs = timeoutMs;
        this.attempts = attempts;
        this.onConnect = onConnect;
    }

    /**
     * What the method gives. Tries again, on the next node, after an IdGenException that says
     * that a retry may help, and where the node cannot be reached or does not answer. A repeated
     * call may use up more ids; it never brings one twice.
     */
    public <T> T call(Method<T> method) throws TException {
        for (tried = 1; ; tried++) {
            try {
                return method.call(connected());
            } catch (IdGenException error) {
                if (!error.retriable || tried == attempts) {
                    throw error;
                }
                goOn();
            } catch (TTransportException | TProtocolException error) {
                goOn();
                if (tried == attempts) {
                    throw error;
                }
            } catch (TException | RuntimeException | Error error) {
                // Perhaps half of a reply was read: nothing may read on behind it.
                close();
                throw error;
            }
            if (tried % nodes.size() == 0) {
                pause();
            }
        }
    }

    /** How many attempts the last call took. */
    public int tried() {
        return tried;
    }

    /** Closes the connection. The next call makes a new one. */
    @Override
    public void close() {
        if (transport != null) {
            transport.close();
        }
        transport = null;
        client = null;
    }

    private void goOn() {
        close();
        at = (at + 1) % nodes.size();
    }

    /** Every node had its turn. At random, so that clients do not come in step. */
    private static void pause() throws TTransportException {
        try {
            Thread.sleep(ThreadLocalRandom.current().nextInt(50, 150));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new TTransportException(error);
        }
    }

    private IdGenService.Client connected() throws TException {
        if (client == null) {
            String node = nodes.get(at);
            int colon = node.lastIndexOf(':');
            int port = Integer.parseInt(node.substring(colon + 1));
            TSocket socket = new TSocket(
                    TConfiguration.DEFAULT, node.substring(0, colon), port, timeoutMs);
            transport = new TFramedTransport(socket);
            transport.open();
            IdGenService.Client made = new IdGenService.Client(new TCompactProtocol(transport));
            if (onConnect != null) {
                onConnect.call(made);
            }
            client = made;
        }
        return client;
    }
}
