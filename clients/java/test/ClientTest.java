import idgen.thrift.IdGenException;
import idgen.thrift.IdGenService;
import idgen.thrift.IdRange;
import idgen.thrift.ResLong;
import java.util.function.Function;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * Tests generated code and library over every pair of transport and protocol. Needs CLIENTS_NODE,
 * a node with the types of scripts/test-clients.sh.
 */
public final class ClientTest {
    private interface Call {
        Object call() throws Exception;
    }

    private static long last;

    private ClientTest() {}

    public static void main(String[] args) throws Exception {
        for (boolean framed : new boolean[] {true, false}) {
            pair(framed, "binary", TBinaryProtocol::new);
            pair(framed, "compact", TCompactProtocol::new);
        }
    }

    private static void pair(boolean framed, String name, Function<TTransport, TProtocol> protocol)
            throws Exception {
        String[] node = System.getenv("CLIENTS_NODE").split(":");
        // A TSocket is buffered by itself.
        TTransport socket = new TSocket(node[0], Integer.parseInt(node[1]), 10_000);
        try (TTransport transport = framed ? new TFramedTransport(socket) : socket) {
            transport.open();
            IdGenService.Client client = new IdGenService.Client(protocol.apply(transport));
            ids(client);
            large(client);
            texts(client);
            refusals(client);
        }
        System.out.println((framed ? "framed " : "buffered ") + name + ": ok");
    }

    /** Ids ascend, by every method and over all pairs. */
    private static void ids(IdGenService.Client client) throws Exception {
        for (int i = 0; i < 200; i++) {
            ascend(client.nextId("order"));
        }
        long before = last;
        long count = 0;
        for (IdRange range : client.nextIds("order", 1000)) {
            ascend(range.first);
            last = range.first + range.count - 1;
            count += range.count;
        }
        Check.that(count == 1000 && last >= before + 1000, "nextIds gave " + count);
        ResLong answer = client.getId("java", "order");
        Check.equal(200, answer.res);
        ascend(answer.value);
        String text = client.getStrId("java", "order", true).value;
        Check.that(text.startsWith("OD"), text);
        ascend(Long.parseLong(text.substring(2)));
        text = client.nextStringId("order", true);
        ascend(Long.parseLong(text.substring(2)));
    }

    private static void ascend(long id) {
        Check.that(id > last, id + " after " + last);
        last = id;
    }

    /** Numbers above 2^53 and near 2^63 are exact: text and number follow each other. */
    private static void large(IdGenService.Client client) throws Exception {
        for (String type : new String[] {"big", "huge"}) {
            String text = client.nextStringId(type, false);
            long id = client.nextId(type);
            Check.that(id > 1L << 53, "not a large id: " + id);
            Check.equal(Long.parseLong(text) + 1, id);
            Check.equal(id + 1, client.nextIds(type, 2).get(0).first);
            Check.equal(Long.parseLong(text), client.decodeId(type, text).id);
        }
    }

    /** UTF-8 both ways. */
    private static void texts(IdGenService.Client client) throws Exception {
        String text = client.nextStringId("umlaut", true);
        Check.that(text.matches("Größe-№-[0-9]+"), text);
        Check.equal("Größe-№-", client.describeType("umlaut").prefix);
        String said = "grüß dich, 世界 😀";
        Check.equal(said, client.echo("java", said).value);
    }

    /** Failures, typed or in `res`. */
    private static void refusals(IdGenService.Client client) throws Exception {
        refused(() -> client.nextId("no-such-type"), "UNKNOWN_TYPE", false, null);
        refused(() -> client.nextIds("order", 0), "INVALID_ARGUMENT", false, "count");
        refused(() -> client.nextId("down"), "UNAVAILABLE", true, null);
        ResLong answer = client.getId("java", "no-such-type");
        Check.equal(553, answer.res);
        Check.equal(-1L, answer.value);
        Check.that(answer.ext.startsWith("UNKNOWN_TYPE: "), answer.ext);
    }

    private static void refused(Call call, String code, boolean retriable, String field)
            throws Exception {
        try {
            throw new AssertionError(code + " was not raised, but " + call.call());
        } catch (IdGenException error) {
            Check.equal(code, error.code);
            Check.equal(retriable, error.retriable);
            Check.equal(field, error.field);
        }
    }
}
