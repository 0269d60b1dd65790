# not a test
"""Something between a proxy and the HTTP socket of a centre. It knows requests and answers, and disturbs or falsifies
them."""
import contextlib
import json
import os
import random
import socket
import threading
import time
from collections import Counter

from harness import LONG
from segment import upload

UPLOADS = b"POST /api/v1/uploads "
PAGES = ((502, "Bad Gateway"), (503, "Service Unavailable"), (504, "Gateway Time-out"), (500, "Oops"),
         (404, "Not Found"), (200, "OK"))
FAULTS = ("twice", "twice", "lost", "lost", "cut", "page after", "page before", "late")


def page(dice):
    """An error page of a proxy; one of them says 200."""
    status, reason = dice.choice(PAGES)
    body = f"<html><head><title>{status} {reason}</title></head><body>nginx</body></html>".encode()
    return (f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body)


class Reading:
    """The requests or answers that come over a socket."""

    def __init__(self, s):
        self.socket, self.data = s, b""

    def more(self):
        piece = self.socket.recv(1 << 16)
        self.data += piece
        return piece != b""

    def take(self):
        """(head, body), or None: the peer has ended."""
        while (end := self.data.find(b"\r\n\r\n") + 4) < 4:
            if not self.more():
                return None
        size = 0
        for line in self.data[:end].lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
        while len(self.data) < end + size:
            if not self.more():
                return None
        head, body = self.data[:end], self.data[end:end + size]
        self.data = self.data[end + size:]
        return head, body


class Between:
    """Passes requests on, each on a connection of its own."""

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(512)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        reading = Reading(near)
        with near, contextlib.suppress(OSError):
            while request := reading.take():
                answer, whole = self.answer(*request)
                near.sendall(answer or b"")
                if not answer or not whole:
                    break

    def ask(self, head, body):
        """The whole answer of the centre, or None."""
        with socket.socket(socket.AF_UNIX) as far, contextlib.suppress(OSError):
            far.settimeout(LONG)
            far.connect(self.target)
            far.sendall(head + body)
            answer = Reading(far).take()
            return answer and answer[0] + answer[1]
        return None

    def answer(self, head, body):
        """(what the proxy gets, True if the connection stays open). Without an answer it is closed."""
        return self.ask(head, body), True

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Early(Between):
    """Acknowledges what the centre does not even get, as long as early is True."""

    def __init__(self, path, target):
        self.early, self.incarnation, self.count = True, "", 0
        super().__init__(path, target)

    def answer(self, head, body):
        batch = upload(body) if head.startswith(UPLOADS) else {}
        if self.early and batch.get(11):
            return self.acknowledge(batch), True
        answer = self.ask(head, body)
        if batch and answer and answer.startswith(b"HTTP/1.1 200"):
            self.incarnation = json.loads(answer.partition(b"\r\n\r\n")[2])["incarnation"]
        return answer, True

    def acknowledge(self, batch):
        rows = []
        for m in map(upload, batch[11]):
            self.count += 1
            rows.append({"sender": m[1][-1].hex(), "sequence": m[2][-1], "outcome": "counted", "number": self.count,
                         "detail": ""})
        body = json.dumps({"centre": batch[1][0].hex(), "incarnation": self.incarnation, "backed_up": 0,
                           "wait_ms": 1000, "went_back": False, "number": batch[7][0], "uploads": rows, "wanted": [],
                           "send": []}).encode()
        return (f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body)


class Meddler(Between):
    """rate: the part of batches that is disturbed. What happens to the n-th follows from the seed and n."""

    def __init__(self, path, target, seed, rate):
        self.seed, self.rate, self.number, self.counts, self.lock = seed, rate, 0, Counter(), threading.Lock()
        super().__init__(path, target)

    def answer(self, head, body):
        if not head.startswith(UPLOADS):
            return self.ask(head, body), True
        with self.lock:
            self.number += 1
            dice = random.Random(f"{self.seed}/between/{self.number}")
            fault = dice.choice(FAULTS) if dice.random() < self.rate else ""
            if fault:
                self.counts[f"requests: {fault}"] += 1
        if fault == "page before":
            return page(dice), True
        if fault == "late":
            time.sleep(dice.random())
        if fault == "twice":
            return self.twice(head, body, dice), True
        answer = self.ask(head, body)
        if fault == "cut":
            return answer and answer[:dice.randrange(len(answer))], False
        return {"lost": None, "page after": page(dice)}.get(fault, answer), True

    def twice(self, head, body, dice):
        """Both are in flight; one of the answers comes back."""
        answers = [None, None]

        def ask(i):
            answers[i] = self.ask(head, body)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return dice.choice(answers)
