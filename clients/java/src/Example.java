import idgen.thrift.IdGenException;
import idgen.thrift.IdRange;
import java.util.List;

/** A client of IdGen: Example HOST:PORT[,HOST:PORT...] [TYPE] */
public final class Example {
    private Example() {}

    public static void main(String[] args) throws Exception {
        String type = args.length > 1 ? args[1] : "order";
        try (Nodes nodes = new Nodes(List.of(args[0].split(",")))) {
            try {
                System.out.println("id: " + nodes.call(client -> client.nextId(type)));

                List<IdRange> ranges = nodes.call(client -> client.nextIds(type, 100));
                IdRange last = ranges.get(ranges.size() - 1);
                System.out.println(
                        "ids: " + ranges.get(0).first + " to " + (last.first + last.count - 1));

                System.out.println("text: " + nodes.call(client -> client.nextStringId(type, true)));
            } catch (IdGenException error) {
                System.err.println("failed after " + nodes.tried() + " attempts: "
                        + error.code + ": " + error.message);
                System.exit(1);
            }

            try {
                nodes.call(client -> client.nextId("no-such-type"));
            } catch (IdGenException error) {
                System.out.println("refused: " + error.code);
            }
        }
    }
}
