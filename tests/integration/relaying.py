# not a test
"""What plays with segments share: programs that upload, and a relay's side of the Unix socket."""
import struct
import threading
import time

from wire import Wire, encoded, field, sender_number, varint

BUILDS = ["a1" * 20, "b2" * 20, "c3" * 20]


def body(sender, sequence, build, callee, calls, stacked=True, counts=None):
    """An UPLOAD with one arc, and one tick and its stack a call, or with these counts."""
    stacks = {"stacks": {0x1100: {0x1000 + 4 * callee: calls}}} if stacked else {}
    counts = counts or encoded([(0, 0x1000, 0x2000, 1024, 100, "seconds", "s", {callee: calls})],
                     [(0x1100, 0x1000 + callee, calls)], **stacks)
    return (field(1, sender.to_bytes(8, "little") + b"\7\0\0\0") + field(2, sequence)
            + field(6, field(1, build) + field(2, "/bin/made-up")) + field(8, counts) + field(10, sequence == 1)
            + field(11, "0123456789abcdef" * 2))


def window(end, seconds=1):
    """Fields of an UPLOAD: its window ends then, in seconds."""
    return b"".join(varint(n << 3 | 1) + struct.pack("<Q", int(t * 10**9)) for n, t in ((3, end - seconds), (4, end)))


def fetch(w, centre, after=0, through=0, error="", tag=1):
    w.send("FETCH", (field(1, centre.incarnation) if centre else b"") + field(2, centre.backup if centre else 0)
           + field(3, after) + field(4, through) + (field(5, error) if error else b""), tag)
    return w.take()


def acknowledge(w, centre, epoch, sequence, number, outcome, tag=2):
    w.send("ACKNOWLEDGE", field(1, epoch) + field(2, sequence) + field(3, centre.incarnation) + field(4, number)
           + field(5, outcome), tag)
    return w.take()


class Sender(threading.Thread):
    """Uploads; each until it is acknowledged. It waits up to pause seconds between two. end(): when the upload that is
    made now shall have ended, in seconds."""

    def __init__(self, d, dice, builds=BUILDS, callees=50, pause=0.0):
        super().__init__(daemon=True)
        self.builds, self.callees, self.pause, self.end = builds, callees, pause, None
        self.d, self.dice, self.ended, self.sent, self.uploads = d, dice, False, {}, 0
        self.number, self.sequence = sender_number(), 0

    def run(self):
        pending = None
        while not self.ended or pending:
            try:
                with Wire(self.d.socket) as w:
                    while not self.ended or pending:
                        if pending is None:
                            self.sequence += 1
                            pending = (self.dice.choice(self.builds), self.dice.randrange(self.callees),
                                       self.dice.randrange(1, 9))
                            ended = window(self.end()) if self.end else b""
                        w.send("UPLOAD", body(self.number, self.sequence, *pending) + ended)
                        answer = w.take()
                        while answer and answer[0] == "WANT_OBJECT":
                            answer = w.take()
                        if answer is None or answer[0] != "ACK":
                            break
                        key = pending[0], 0x1000 + pending[1]
                        self.sent[key] = self.sent.get(key, 0) + pending[2]
                        self.uploads += 1
                        pending = None
                        if self.pause:
                            time.sleep(self.dice.random() * self.pause)
            except (OSError, TypeError, ValueError):
                pass
            time.sleep(0.01)


def equation(relay):
    return all(relay["accepted"][k] == sum(relay[part][k] for part in ("acknowledged", "withdrawn", "sealed", "open"))
               for k in ("uploads", "ticks", "calls"))
