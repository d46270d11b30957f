"""Calls to IdGen that go on to the next node where one does not answer.

Copy this file into your project, beside the code that the Thrift compiler makes.
"""

import random
import socket
import time

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport, TTransportException

from idgen import IdGenService
from idgen.ttypes import IdGenException


class Nodes:
    """One connection, to the first of the nodes that works.

    For one thread at a time, as every Thrift client: give each thread its own.
    `nodes` are texts as "10.0.0.1:5900". `timeout` is how long connecting, and each
    answer, may take, in seconds. `on_connect` is called with the client after each
    connecting; authenticate there, if your cluster wants a token.
    """

    def __init__(self, nodes, timeout=2.0, attempts=4, on_connect=None):
        self._nodes = [(host, int(port)) for host, _, port in (n.rpartition(":") for n in nodes)]
        if not self._nodes:
            raise ValueError("no nodes")
        self._timeout = timeout
        self._attempts = attempts
        self._on_connect = on_connect
        self._at = 0
        self._transport = None
        self._client = None
        self.tried = 0
        """How many attempts the last call took."""

    def call(self, method):
        """What `method` returns, which is called with a connected client.

        Tries again, on the next node, where a retry may help: after an IdGenException
        that says so, and where the node cannot be reached or does not answer. A
        repeated call may use up more ids; it never brings one twice.
        """
        for attempt in range(1, self._attempts + 1):
            self.tried = attempt
            try:
                return method(self._connected())
            except IdGenException as error:
                if not error.retriable or attempt == self._attempts:
                    raise
                self._go_on()
            except (TTransportException, TProtocolException, OSError):
                self._go_on()
                if attempt == self._attempts:
                    raise
            except BaseException:
                # Perhaps half of a reply was read: nothing may read on behind it.
                self.close()
                raise
            if attempt % len(self._nodes) == 0:
                # Every node had its turn. At random, so that clients do not come in step.
                time.sleep(random.uniform(0.05, 0.15))

    def close(self):
        """Closes the connection. The next call makes a new one."""
        transport, self._transport, self._client = self._transport, None, None
        if transport is not None:
            transport.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _go_on(self):
        self.close()
        self._at = (self._at + 1) % len(self._nodes)

    def _connected(self):
        if self._client is None:
            raw = TSocket(*self._nodes[self._at])
            raw.setTimeout(self._timeout * 1000)
            self._transport = TFramedTransport(raw)
            self._transport.open()
            raw.handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = IdGenService.Client(TCompactProtocol(self._transport))
            if self._on_connect is not None:
                self._on_connect(client)
            self._client = client
        return self._client
