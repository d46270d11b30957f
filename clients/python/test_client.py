"""Tests generated code and library over every pair of transport and protocol.

Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.
"""

import os
import unittest

from thrift.protocol import TBinaryProtocol, TCompactProtocol
from thrift.transport import TSocket, TTransport

from idgen import IdGenService
from idgen.ttypes import IdGenException

HOST, PORT = os.environ["CLIENTS_NODE"].rsplit(":", 1)
TRANSPORTS = [TTransport.TFramedTransport, TTransport.TBufferedTransport]
PROTOCOLS = [
    TBinaryProtocol.TBinaryProtocol,
    TBinaryProtocol.TBinaryProtocolAccelerated,
    TCompactProtocol.TCompactProtocol,
    TCompactProtocol.TCompactProtocolAccelerated,
]


class EveryPair(unittest.TestCase):
    """One connection per pair; the ids ascend over all of them."""

    def test_every_pair(self):
        last = 0
        for transport in TRANSPORTS:
            for protocol in PROTOCOLS:
                with self.subTest(transport=transport.__name__, protocol=protocol.__name__):
                    raw = TSocket.TSocket(HOST, int(PORT))
                    raw.setTimeout(10000)
                    wrapped = transport(raw)
                    client = IdGenService.Client(protocol(wrapped))
                    wrapped.open()
                    try:
                        last = self.ids(client, last)
                        self.large(client)
                        self.texts(client)
                        self.refusals(client)
                    finally:
                        wrapped.close()
                    print(f"{transport.__name__} {protocol.__name__}: ok", flush=True)

    def ids(self, client, last):
        """Ids ascend, by every method. Gives the last one."""
        for _ in range(200):
            number = client.nextId("order")
            self.assertGreater(number, last)
            last = number
        for part in client.nextIds("order", 1000):
            self.assertGreater(part.first, last)
            last = part.first + part.count - 1
        self.assertGreaterEqual(last, number + 1000)
        answer = client.getId("python", "order")
        self.assertEqual(answer.res, 200)
        self.assertGreater(answer.value, last)
        answer = client.getStrId("python", "order", True)
        self.assertEqual(answer.res, 200)
        self.assertRegex(answer.value, "^OD[0-9]+$")
        text = client.nextStringId("order", True)
        self.assertGreater(int(text[2:]), int(answer.value[2:]))
        return int(text[2:])

    def large(self, client):
        """Numbers above 2^53 and near 2^63 are exact: text and number follow each other."""
        for id_type in ("big", "huge"):
            text = client.nextStringId(id_type, False)
            number = client.nextId(id_type)
            self.assertGreater(number, 2**53)
            self.assertEqual(number, int(text) + 1)
            self.assertEqual(client.nextIds(id_type, 2)[0].first, number + 1)
            self.assertEqual(client.decodeId(id_type, text).id, int(text))

    def texts(self, client):
        """UTF-8 both ways."""
        self.assertRegex(client.nextStringId("umlaut", True), "^Größe-№-[0-9]+$")
        self.assertEqual(client.describeType("umlaut").prefix, "Größe-№-")
        self.assertEqual(client.echo("python", "grüß dich, 世界 😀").value, "grüß dich, 世界 😀")

    def refusals(self, client):
        """Failures, typed or in `res`."""
        for call, code, retriable, field in [
            (lambda: client.nextId("no-such-type"), "UNKNOWN_TYPE", False, None),
            (lambda: client.nextIds("order", 0), "INVALID_ARGUMENT", False, "count"),
            (lambda: client.nextId("down"), "UNAVAILABLE", True, None),
        ]:
            with self.assertRaises(IdGenException) as caught:
                call()
            error = caught.exception
            self.assertEqual((error.code, error.retriable, error.field), (code, retriable, field))
        answer = client.getId("python", "no-such-type")
        self.assertEqual((answer.res, answer.value), (553, -1))
        self.assertTrue(answer.ext.startswith("UNKNOWN_TYPE: "))


if __name__ == "__main__":
    unittest.main()
