"""Ids handed out in this process, from leases of a segment type.

Copy this file and nodes.py into your project, beside the code that the Thrift
compiler makes. A node is asked once per `count` ids, in the background and before
they run out, so that next_id() costs no call.
"""

import os
import threading
import time
import weakref

from idgen.ttypes import IdGenException
from nodes import Nodes


class LocalIds:
    """Hands out ids of one type, for any number of threads.

        with LocalIds(["10.0.0.1:5900", "10.0.0.2:5900"], "event") as ids:
            ids.next_id()

    An id is handed out once. Those of this object ascend while a node has no other
    lease in between and all leases come from the same node; do not count on it. What
    is left of a lease when it expires, or at the end, is lost.

    id_type     a segment type whose ids are in order
    count       ids per lease; take what you need in some seconds
    ttl         how long a lease may live, in seconds, 1 to 86400
    timeout     how long next_id() waits for a lease, in seconds
    attempt     how long one node may take to connect, or to answer, in seconds
    on_connect  called with the client after each connecting: authenticate there
    clock       monotonic, in seconds; one that stands still in sleep makes leases
                that are used too long, so take one that does not, if there is one
    """

    def __init__(self, nodes, id_type, count=10_000, ttl=60.0, timeout=5.0, attempt=2.0,
                 on_connect=None, clock=None):
        self._nodes = list(nodes)
        self._type, self._count, self._ttl_ms = id_type, count, int(ttl * 1000)
        self._timeout, self._attempt = timeout, attempt
        self._on_connect = on_connect
        self._clock = clock or _clock
        self._closed = False
        self._begin()
        _alive.add(self)

    def next_id(self):
        """The next id.

        Raises IdGenException, or what the transport raised, if there was none within
        `timeout`; at once, if asking again would not help. RuntimeError after close().
        """
        with self._changed:
            lease = self._lease
            if lease is None or not lease.left or self._clock() >= lease.expires:
                lease = self._lease = self._next_lease()
            number = lease.first
            lease.first += lease.step
            lease.left -= 1
            if lease.left <= lease.low and self._spare is None and not self._wanted:
                self._want()
            return number

    def close(self):
        """Ends the background thread. Ids that were not handed out are lost."""
        with self._changed:
            self._closed = True
            self._lease = self._spare = None
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _begin(self):
        self._changed = threading.Condition()
        self._lease = None
        self._spare = None
        self._wanted = False
        self._error = None
        self._failures = 0
        self._thread = None

    def _want(self):
        self._wanted = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._fetch, name="idgen-leases", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _next_lease(self):
        """A lease with ids, when there is one. Called with the lock held."""
        until = time.monotonic() + self._timeout
        seen = self._failures
        while not self._closed:
            # Another thread may have brought it into use meanwhile.
            for lease in (self._lease, self._spare):
                if lease is not None and lease.left and self._clock() < lease.expires:
                    if lease is self._spare:
                        self._spare = None
                    return lease
            self._spare = None
            if self._failures != seen and not _may_pass(self._error):
                raise self._error
            if not self._wanted:
                self._want()
            left = until - time.monotonic()
            if left <= 0:
                raise self._error if self._failures != seen else TimeoutError(
                    f"no lease of {self._type} within {self._timeout} s")
            self._changed.wait(left)
        raise RuntimeError("closed")

    def _fetch(self):
        """Brings a lease whenever one is wanted, until close()."""
        pause = 0.05
        # One round over the nodes at a time: the pauses between rounds are made here,
        # where close() ends them.
        with Nodes(self._nodes, self._attempt, len(self._nodes), self._on_connect) as nodes:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._wanted or self._closed)
                    if self._closed:
                        return
                try:
                    lease, error = nodes.call(self._ask), None
                except Exception as raised:  # whoever waits is told, whatever it is
                    lease, error = None, raised
                with self._changed:
                    if lease is not None:
                        pause = 0.05
                        self._spare = lease
                        self._wanted = False
                        self._changed.notify_all()
                        continue
                    self._error = error
                    self._failures += 1
                    self._wanted = _may_pass(error)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closed, pause)
                pause = min(2 * pause, 1.0)

    def _ask(self, client):
        # The life of a lease counts from before it is asked for: who counts from the
        # answer uses ids that the cluster has already given up.
        sent = self._clock()
        lease = client.leaseRange(self._type, self._count, self._ttl_ms)
        return _Lease(lease, sent)


class _Lease:
    """What is left of a lease."""

    __slots__ = ("first", "step", "left", "low", "expires")

    def __init__(self, lease, sent):
        self.first, self.step, self.left = lease.first, lease.step, lease.count
        self.low = lease.count // 2
        self.expires = sent + lease.ttlMs / 1000


def _may_pass(error):
    """Whether the same call may succeed later."""
    if isinstance(error, IdGenException):
        return error.retriable
    return isinstance(error, OSError) or type(error).__name__ in (
        "TTransportException", "TProtocolException")


def _clock():
    """A monotonic clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(_BOOTTIME)


_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)
if _BOOTTIME is None:
    _clock = time.monotonic

# A child of fork() has a copy of the lease, and would hand out the same ids as its
# parent: it begins with nothing, as if new.
_alive = weakref.WeakSet()


def _after_fork():
    for ids in list(_alive):
        ids._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
