"""A client of IdGen: example.py HOST:PORT[,HOST:PORT…] [TYPE]"""

import sys

from idgen.ttypes import IdGenException
from nodes import Nodes


def main():
    """Takes ids in every way that most programs need."""
    id_type = sys.argv[2] if len(sys.argv) > 2 else "order"
    with Nodes(sys.argv[1].split(",")) as nodes:
        try:
            print("id:", nodes.call(lambda client: client.nextId(id_type)))

            ranges = nodes.call(lambda client: client.nextIds(id_type, 100))
            ids = [part.first + at for part in ranges for at in range(part.count)]
            print("ids:", ids[0], "to", ids[-1])

            print("text:", nodes.call(lambda client: client.nextStringId(id_type, True)))
        except IdGenException as error:
            sys.exit(f"failed after {nodes.tried} attempts: {error.code}: {error.message}")

        try:
            nodes.call(lambda client: client.nextId("no-such-type"))
        except IdGenException as error:
            print("refused:", error.code)


if __name__ == "__main__":
    main()
