# not a test
"""Something between the relay of a host and nginx that knows TCP and the records of TLS. It drops, delays, doubles,
half-closes and cuts connections, and partitions the network. What happens to the n-th connection follows from the seed
and n."""
import random
import select
import socket
import struct
import threading
import time
from collections import Counter

from harness import LONG

FAULTS = ("drop", "delay", "twice", "half", "cut", "cut", "lose", "lose", "lose")  # the last: an answer is thrown away
RECORDS = 20  # of nginx, within which a connection is cut: some are of the handshake
LIFE = 200    # records at most, after which a connection ends that nothing else disturbs, while there are disturbances
HELD = 1.0    # seconds for which a half-closed connection stays


def reset(s):
    """Ends a connection with a reset: what is on its way is lost."""
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    except OSError:
        pass


class Records:
    """Counts TLS records in a stream of bytes."""

    def __init__(self):
        self.rest, self.count = b"", 0

    def add(self, data):
        """The bytes of each record that is complete now."""
        self.rest += data
        out = []
        while len(self.rest) >= 5:
            size = 5 + int.from_bytes(self.rest[3:5], "big")
            if len(self.rest) < size:
                break
            out.append(self.rest[:size])
            self.rest = self.rest[size:]
        self.count += len(out)
        return out


class Proxy:
    """rate: the part of connections that is disturbed. targets: ports, of which each connection gets one by chance."""

    def __init__(self, port, seed, rate=0.5):
        self.targets, self.seed, self.rate, self.number = (port,), seed, rate, 0
        self.counts, self.closed, self.refuses, self.ended = Counter(), False, False, False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def partition(self, closed):
        """While it is closed nothing passes. What was open before is cut, or goes on afterwards."""
        self.counts["partitions"] += closed and not self.closed
        self.closed = closed

    def accept(self):
        while not self.ended:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            self.number += 1
            threading.Thread(target=self.serve, args=(near, random.Random(f"{self.seed}/{self.number}")),
                             daemon=True).start()

    def connect(self, near, target):
        try:
            return socket.create_connection(("127.0.0.1", target), LONG)
        except OSError:
            reset(near)
            return None

    def serve(self, near, dice):
        fault = dice.choice(FAULTS) if dice.random() < self.rate else ""
        self.wait()
        if fault == "drop" or self.refuses:
            self.counts["refused" if self.refuses else "dropped"] += 1
            return reset(near)
        target = dice.choice(self.targets)
        far = self.connect(near, target)
        again = self.connect(near, target) if far and fault == "twice" else None
        if far is None or (fault == "twice" and again is None):
            return None
        self.counts["doubled connections"] += again is not None
        try:
            self.pump(near, far, again, fault, dice)
        except OSError:
            pass
        for s in (near, far, again):
            if s:
                reset(s)
        return None

    def wait(self):
        """Until the partition ends. True if there was one."""
        was = self.closed
        while self.closed and not self.ended:
            time.sleep(0.01)
        return was

    def pump(self, near, far, again, fault, dice):
        records, last, until_end = Records(), dice.randrange(1, (RECORDS if fault else LIFE) + 1), None
        halved = None
        while until_end is None or time.monotonic() < until_end:
            ready = select.select([s for s in (near, far) if s is not halved], [], [], 0.05)[0]
            if self.wait() and dice.random() < 0.5:
                self.counts["cut by a partition"] += 1
                return
            if fault == "delay" and ready:
                self.counts["delayed"] += 1
                time.sleep(dice.random() * 0.1)
            for s in ready:
                data = s.recv(65536)
                if not data:
                    return
                if s is near:
                    far.sendall(data)
                    if again:
                        again.sendall(data)
                    continue
                for record in records.add(data) if fault in ("cut", "lose", "half", "") else ():
                    last -= 1
                    if last <= 0 and fault == "" and self.rate:
                        self.counts["ended"] += 1
                        return
                    if last == 0 and fault == "half":
                        self.counts["half-closed"] += 1
                        halved = dice.choice((near, far))
                        (far if halved is near else near).shutdown(socket.SHUT_WR)
                        until_end = time.monotonic() + HELD * dice.random()
                    elif last == 0 and fault:
                        self.counts["cut before an answer" if fault == "lose" else "cut behind an answer"] += 1
                        if fault == "cut":
                            near.sendall(record)
                        return
                    if halved is not far:
                        near.sendall(record)
                if fault not in ("cut", "lose", "half", ""):
                    near.sendall(data)

    def stop(self):
        self.ended = True
        self.listener.close()
