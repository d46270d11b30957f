"""How fast LocalIds hands out ids, beside a counter: CLIENTS_NODE=HOST:PORT measure.py

Each figure is the best of five, in ids per second: one thread, then four.
"""

import itertools
import os
import threading
import time

from local_ids import LocalIds

TIMES = 200_000


class Counter:
    """A counter under a lock."""

    def __init__(self):
        self._lock = threading.Lock()
        self._last = 0

    def next_id(self):
        """The next number."""
        with self._lock:
            self._last += 1
            return self._last


def rate(take, threads):
    """Calls of `take` per second, by so many threads."""
    def work():
        for _ in itertools.repeat(None, TIMES):
            take()
    best = 0
    for _ in range(5):
        workers = [threading.Thread(target=work) for _ in range(threads)]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = max(best, threads * TIMES / (time.perf_counter() - begun))
    return best


def main():
    """One line per subject and number of threads."""
    with LocalIds([os.environ["CLIENTS_NODE"]], "event", count=1_000_000) as ids:
        for name, take in [("counter", Counter().next_id), ("LocalIds", ids.next_id)]:
            for threads in (1, 4):
                print(f"{name}, {threads} threads: {rate(take, threads) / 1e6:.2f} million/s")


if __name__ == "__main__":
    main()
