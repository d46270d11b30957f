"""A client of IdGen in Python, over every pair of transport and protocol.

Usage: client.py HOST PORT [STRICT [SEGMENT [SHARDED]]]

Uses the code that the Thrift compiler makes from idl/idgen.thrift, and the
`thrift` package; scripts/python-client.sh prepares both. The types must exist;
STRICT is `order` if not given, and what needs the others is left out without them.
Exits with 1 and says what is wrong at the first answer that is not as the IDL promises.
"""

import json
import os
import sys

from thrift.protocol import TBinaryProtocol, TCompactProtocol
from thrift.transport import TSocket, TTransport

from idgen import IdGenService
from idgen.ttypes import IdGenException

PAIRS = [
    ("framed binary", TTransport.TFramedTransport, TBinaryProtocol.TBinaryProtocol),
    ("framed compact", TTransport.TFramedTransport, TCompactProtocol.TCompactProtocol),
    ("buffered binary", TTransport.TBufferedTransport, TBinaryProtocol.TBinaryProtocol),
    ("buffered compact", TTransport.TBufferedTransport, TCompactProtocol.TCompactProtocol),
]


def expect(holds, what):
    """Fails with `what` unless `holds`."""
    if not holds:
        raise AssertionError(what)


def new_type(name):
    """The JSON of addNewId."""
    return json.dumps({
        "project_name": "shop", "id_name": name, "id_prifx": "PY", "id_start": 1000,
        "last_range": 0, "max_range": 100000, "min_range": 1000, "applicant": "ann",
        "redis_flag": 1, "state": 1, "min_load_interval": 600, "load_percentage": 0.1,
        "lock_expire": 10, "other_info": "from Python",
    })


def original_methods(client, id_type, new_name):
    """The four methods that never raise."""
    said = client.echo("python", "grüß dich")
    expect((said.res, said.value, said.ext) == (200, "grüß dich", None), said)
    said = client.echo("", "x")
    expect(said.res == 552 and said.value is None and "caller" in said.ext, said)

    one = client.getId("python", id_type)
    two = client.getId("python", id_type)
    expect((one.res, one.ext, two.res) == (200, None, 200), (one, two))
    expect(0 < one.value < two.value, (one, two))
    failed = client.getId("python", "no-such-type")
    expect((failed.res, failed.value) == (553, -1), failed)
    expect(failed.ext.startswith("UNKNOWN_TYPE"), failed)
    failed = client.getId("python", None)
    expect((failed.res, failed.value) == (552, -1), failed)

    prefix = client.describeType(id_type).prefix
    text = client.getStrId("python", id_type, True)
    expect(text.res == 200 and text.value.startswith(prefix), text)
    expect(int(text.value[len(prefix):]) > two.value, text)
    text = client.getStrId("python", id_type, False)
    expect(text.res == 200 and text.value.isdigit(), text)
    failed = client.getStrId("python", "no-such-type", True)
    expect((failed.res, failed.value) == (553, None), failed)

    made = client.addNewId("python", new_type(new_name))
    expect((made.res, made.value) == (200, True), made)
    again = client.addNewId("python", new_type(new_name))
    expect((again.res, again.value) == (553, False), again)
    broken = client.addNewId("python", "{")
    expect((broken.res, broken.value) == (552, False), broken)


def typed_methods(client, id_type):
    """The methods that raise IdGenException."""
    one = client.nextId(id_type)
    ranges = client.nextIds(id_type, 100000)
    expect(sum(part.count for part in ranges) == 100000, ranges)
    expect(ranges[0].first > one, (one, ranges))
    last = ranges[-1].first + ranges[-1].count - 1
    text = client.nextStringId(id_type, True)
    info = client.describeType(id_type)
    expect(text.startswith(info.prefix) and int(text[len(info.prefix):]) > last, text)
    expect((info.name, info.mode, info.state) == (id_type, "strict", "active"), info)
    expect(0 <= info.loadPercentage <= 1 and info.maxId > info.firstId, info)
    node = client.nodeStatus()
    expect(node.ready and not node.draining and node.parts, node)

    try:
        client.nextId("no-such-type")
    except IdGenException as error:
        expect(error.code == "UNKNOWN_TYPE" and not error.retriable, error)
        expect("no-such-type" in error.message and error.field is None, error)
    else:
        raise AssertionError("an unknown type was not refused")
    for count in (0, -1, 100001):
        try:
            client.nextIds(id_type, count)
        except IdGenException as error:
            expect((error.code, error.field) == ("INVALID_ARGUMENT", "count"), error)
        else:
            raise AssertionError(f"a count of {count} was not refused")


def refused(call, code, field):
    """Fails unless `call` raises `code` about `field`."""
    try:
        answer = call()
    except IdGenException as error:
        expect((error.code, error.field) == (code, field), error)
    else:
        raise AssertionError(f"{code} ({field}) was not raised, but {answer}")


def every_kind(client, strict, segment, sharded, key):
    """The methods that came with the other modes."""
    one = client.issueIds(strict, 3, None, None)
    expect(sum(part.count for part in one) == 3, one)
    expect(client.issueIds(strict, 3, "", "")[0].first > one[0].first, one)
    first = client.issueIds(strict, 2, key, None)
    expect(client.issueIds(strict, 2, key, None) == first, first)
    refused(lambda: client.issueIds(strict, 3, key, None), "CONFLICT", None)
    refused(lambda: client.issueIds(strict, 1, None, "me"), "INVALID_ARGUMENT", "gatePass")
    refused(lambda: client.nextShardedId(strict, "me"), "INVALID_ARGUMENT", "gatePass")
    refused(lambda: client.leaseRange(strict, 10, 1000), "INVALID_ARGUMENT", "idType")

    prefix = client.describeType(strict).prefix
    texts = client.issueStringIds(strict, 3, True, None, None)
    expect(len(set(texts)) == 3 and all(text.startswith(prefix) for text in texts), texts)
    told = client.decodeId(strict, texts[0])
    expect((told.idType, told.mode, told.text) == (strict, "strict", texts[0]), told)
    expect(told.issued and told.id == int(texts[0][len(prefix):]), told)
    expect(told.shard is None and told.worker is None and told.period is None, told)
    refused(lambda: client.decodeId(strict, "no id"), "INVALID_ARGUMENT", "id")

    if segment:
        lease = client.leaseRange(segment, 50, 60000)
        expect(1 <= lease.count <= 50 and lease.step >= 1 and lease.ttlMs <= 60000, lease)
        refused(lambda: client.leaseRange(segment, 0, 60000), "INVALID_ARGUMENT", "count")
        refused(lambda: client.leaseRange(segment, 1, 999), "INVALID_ARGUMENT", "ttlMs")
    if sharded:
        one, two = (client.nextShardedId(sharded, "alice") for _ in range(2))
        expect(one != two and one & 0x3fff == two & 0x3fff, (one, two))
        many = client.issueIds(sharded, 100, None, "alice")
        expect(sum(part.count for part in many) == 100, many)
        told = client.decodeId(sharded, str(one))
        expect(told.shard == one >> 8 & 63 and told.appId == one & 255, told)
        refused(lambda: client.nextShardedId(sharded, ""), "INVALID_ARGUMENT", "gatePass")
        refused(lambda: client.nextId(sharded), "INVALID_ARGUMENT", "gatePass")


def main():
    """Runs every method over every pair."""
    host, port = sys.argv[1], int(sys.argv[2])
    id_type = sys.argv[3] if len(sys.argv) > 3 else "order"
    segment = sys.argv[4] if len(sys.argv) > 4 else None
    sharded = sys.argv[5] if len(sys.argv) > 5 else None
    for at, (pair, transport, protocol) in enumerate(PAIRS):
        socket = TSocket.TSocket(host, port)
        socket.setTimeout(10000)
        wrapped = transport(socket)
        client = IdGenService.Client(protocol(wrapped))
        wrapped.open()
        try:
            original_methods(client, id_type, f"py-{os.getpid()}-{at}")
            typed_methods(client, id_type)
            every_kind(client, id_type, segment, sharded, f"py-{os.getpid()}-{at}")
        finally:
            wrapped.close()
        print(f"{pair}: ok")


if __name__ == "__main__":
    main()
