"""Tests LocalIds: against real nodes, and against a stand-in that does as it is told.

Needs CLIENTS_NODE and CLIENTS_PROGRAM, as scripts/test-clients.sh sets them.
"""

import itertools
import os
import socket
import subprocess
import tempfile
import threading
import unittest

from thrift.protocol.TCompactProtocol import TCompactProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TFramedTransportFactory

from idgen import IdGenService
from idgen.ttypes import IdGenException, RangeLease
from local_ids import LocalIds

NODE = os.environ["CLIENTS_NODE"]
NOBODY = "127.0.0.1:1"


class StandIn:
    """A node whose leaseRange is `answer(number of the call, from 0)`."""

    def __init__(self, answer):
        self._answer = answer
        self._changed = threading.Condition()
        self.asked = 0
        listener = TServerSocket("127.0.0.1", 0)
        listener.listen()
        listener.listen = lambda: None  # serve() would do it again, on another port
        self.address = "127.0.0.1:%d" % listener.handle.getsockname()[1]
        server = TThreadedServer(IdGenService.Processor(self), listener,
                                 TFramedTransportFactory(), TCompactProtocolFactory(), daemon=True)
        threading.Thread(target=server.serve, daemon=True).start()

    def leaseRange(self, id_type, count, ttl_ms):
        """As in the IDL."""
        with self._changed:
            at = self.asked
            self.asked += 1
            self._changed.notify_all()
        return self._answer(at)

    def until_asked(self, times):
        """Waits for so many calls."""
        with self._changed:
            self._changed.wait_for(lambda: self.asked >= times)


class Time:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Unique(unittest.TestCase):
    """No id twice, whatever happens."""

    def test_many_threads(self):
        found = [[] for _ in range(16)]
        with LocalIds([NODE], "event", count=500) as ids:
            def take(into):
                for _ in range(5000):
                    into.append(ids.next_id())
            threads = [threading.Thread(target=take, args=(into,)) for into in found]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for part in found:
            self.assertEqual(part, sorted(part))
        self.assertEqual(len(set(itertools.chain(*found))), 16 * 5000)

    def test_two_of_them_share_nothing(self):
        with LocalIds([NODE], "event", count=50) as one, LocalIds([NODE], "event", count=50) as two:
            found = [ids.next_id() for _ in range(500) for ids in (one, two)]
        self.assertEqual(len(set(found)), 1000)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork on this system")
    def test_a_child_of_fork_begins_anew(self):
        with LocalIds([NODE], "event", count=1000) as ids:
            before = [ids.next_id() for _ in range(10)]
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                text = " ".join(str(ids.next_id()) for _ in range(100))
                os.write(writer, text.encode())
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as pipe:
                theirs = [int(number) for number in pipe.read().split()]
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            ours = [ids.next_id() for _ in range(100)]
        self.assertEqual(len(theirs), 100)
        self.assertEqual(len(set(before + theirs + ours)), 210)

    def test_a_restart_of_the_node(self):
        with tempfile.TemporaryDirectory() as data:
            thrift, http = _free_port(), _free_port()
            node = _start(data, thrift, http)
            try:
                subprocess.run(
                    [os.environ["CLIENTS_PROGRAM"], "type", "add", "event", "--mode", "segment",
                     "--url", f"http://127.0.0.1:{http}", "--data", data],
                    check=True, stdout=subprocess.DEVNULL)
                with LocalIds([f"127.0.0.1:{thrift}"], "event", count=100, timeout=30) as ids:
                    found = [ids.next_id()]
                    _stop(node)
                    # What is leased goes on without the node, up to its end.
                    found += [ids.next_id() for _ in range(99)]
                    ids._timeout = 0.2
                    with self.assertRaises(Exception):
                        for _ in range(101):
                            found.append(ids.next_id())
                    node = _start(data, thrift, http)
                    ids._timeout = 30
                    found += [ids.next_id() for _ in range(300)]
                self.assertEqual(len(set(found)), len(found))
            finally:
                _stop(node)


class Leases(unittest.TestCase):
    """What a lease allows."""

    def test_the_life_counts_from_when_the_call_was_sent(self):
        clock = Time()

        def answer(at):
            clock.now += 0.6
            return RangeLease(100 * (at + 1), 10, 1, 1000)
        node = StandIn(answer)
        with LocalIds([node.address], "event", clock=clock) as ids:
            self.assertEqual(ids.next_id(), 100)
            clock.now += 0.375
            self.assertEqual(ids.next_id(), 101)
            # 0.625 s after the answer, but 1.225 s after the call.
            clock.now += 0.25
            self.assertEqual(ids.next_id(), 200)

    def test_a_lease_in_reserve_expires_too(self):
        clock = Time()
        node = StandIn(lambda at: RangeLease(100 * (at + 1), 2, 1, 1000))
        with LocalIds([node.address], "event", clock=clock) as ids:
            self.assertEqual(ids.next_id(), 100)
            while ids._spare is None:
                with ids._changed:
                    ids._changed.wait_for(lambda: ids._spare)
            clock.now += 1
            self.assertEqual(ids.next_id(), 300)

    def test_the_step(self):
        node = StandIn(lambda at: RangeLease(5 + 300 * at, 3, 7, 60000))
        with LocalIds([node.address], "event") as ids:
            self.assertEqual([ids.next_id() for _ in range(5)], [5, 12, 19, 305, 312])

    def test_the_next_lease_comes_in_the_background(self):
        gate = threading.Event()

        def answer(at):
            if at == 1:
                gate.wait()
            return RangeLease(100 * (at + 1), 10, 1, 60000)
        node = StandIn(answer)
        with LocalIds([node.address], "event", attempt=30, timeout=30) as ids:
            found = [ids.next_id() for _ in range(5)]
            node.until_asked(2)
            # Asked for, and not there: the rest of the first goes out meanwhile.
            found += [ids.next_id() for _ in range(5)]
            self.assertEqual(found, list(range(100, 110)))
            gate.set()
            self.assertEqual(ids.next_id(), 200)


class Failures(unittest.TestCase):
    """Fail-over, and what the caller is told."""

    def test_the_next_node_takes_over(self):
        def down(_):
            raise IdGenException("UNAVAILABLE", "as told", True)
        first = StandIn(down)
        with LocalIds([NOBODY, first.address, NODE], "event", count=100) as ids:
            found = {ids.next_id() for _ in range(1000)}
        self.assertEqual(len(found), 1000)
        self.assertGreaterEqual(first.asked, 1)

    def test_a_node_that_does_not_answer_is_passed_over(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "127.0.0.1:%d" % silent.getsockname()[1]
            with LocalIds([address, NODE], "event", attempt=0.2) as ids:
                self.assertGreater(ids.next_id(), 0)

    def test_what_no_retry_helps_is_raised_at_once(self):
        for id_type, code, field in [("no-such-type", "UNKNOWN_TYPE", None),
                                     ("order", "INVALID_ARGUMENT", "idType")]:
            # A wait for the end of this timeout would be seen.
            with LocalIds([NODE], id_type, timeout=1e6) as ids:
                with self.assertRaises(IdGenException) as caught:
                    ids.next_id()
                self.assertEqual((caught.exception.code, caught.exception.field), (code, field))

    def test_what_a_retry_may_help_is_raised_in_the_end(self):
        def down(_):
            raise IdGenException("UNAVAILABLE", "as told", True)
        with LocalIds([StandIn(down).address], "event", timeout=0.3) as ids:
            with self.assertRaises(IdGenException) as caught:
                ids.next_id()
        self.assertEqual(caught.exception.code, "UNAVAILABLE")

    def test_after_a_failure_it_goes_on(self):
        def answer(at):
            if at < 3:
                raise IdGenException("UNAVAILABLE", "as told", True)
            return RangeLease(100, 10, 1, 60000)
        with LocalIds([StandIn(answer).address], "event", timeout=30) as ids:
            self.assertEqual(ids.next_id(), 100)

    def test_on_connect_comes_before_the_calls(self):
        seen = []
        with LocalIds([NODE], "event", on_connect=lambda client: seen.append(
                client.echo("me", "hello").value)) as ids:
            ids.next_id()
        self.assertEqual(seen, ["hello"])

    def test_the_end(self):
        ids = LocalIds([NODE], "event")
        ids.next_id()
        ids.close()
        ids.close()
        with self.assertRaises(RuntimeError):
            ids.next_id()


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _start(data, thrift, http):
    """A node, when it is ready."""
    node = subprocess.Popen(
        [os.environ["CLIENTS_PROGRAM"], "serve", "--data", data,
         "--thrift", f"127.0.0.1:{thrift}", "--http", f"127.0.0.1:{http}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in node.stdout:
        if line.startswith("  admin "):
            return node
    raise AssertionError("the node did not start")


def _stop(node):
    """Kills it: what it had in memory is lost."""
    node.kill()
    node.wait()
    node.stdout.close()


if __name__ == "__main__":
    unittest.main()
