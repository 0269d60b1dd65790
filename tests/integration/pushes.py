"""POST /api/v1/uploads through nginx and HAProxy as they are shipped, and through both set up to send a request again:
whatever a proxy repeats, cuts off, gives up or answers by itself, what the centre has counted in the end is what was
sent, once. What slow senders hold is nginx's."""
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import threading

from between import Between, Meddler
from harness import LONG, Daemon, Tap, parse_response, until
from https_bed import Haproxy, Nginx, Relay, proxied, why_not
from judge import calls_of
from relaying import Sender
from uploads import BUILDS, batch, make
from wire import sender_number

PATH = "/api/v1/uploads"
TYPE = "application/x-protobuf"
AGAIN = {Nginx: (("server unix:{path} max_conns=192;",
                  "server unix:{path} max_fails=0; server unix:{path} max_fails=0;"),
                 ("proxy_read_timeout 60s;", "proxy_read_timeout 2s; proxy_next_upstream error timeout invalid_header "
                  "http_500 http_502 http_503 http_504 non_idempotent;")),
         Haproxy: (("retry-on conn-failure", "retry-on all-retryable-errors"), ("retries 2", "retries 5"),
                   ("timeout server 60s", "timeout server 2s"))}
IMPATIENT = {Nginx: (("proxy_read_timeout 60s;", "proxy_read_timeout 1s;"),),
             Haproxy: (("timeout server 60s", "timeout server 1s"),)}


class Pusher:
    """A host that sends through a proxy, and remembers what it has made."""

    def __init__(self, d, proxy, token):
        self.d, self.proxy, self.token, self.sender, self.made = d, proxy, token, sender_number(), []
        self.context = ssl.create_default_context(cafile=proxy.ca)
        status, answer = self.post(batch())
        if status != 200:
            raise RuntimeError(f"{status} {answer}")
        self.centre = bytes.fromhex(json.loads(answer)["centre"])

    def connect(self):
        s = socket.create_connection(("localhost", self.proxy.port), LONG)
        return self.context.wrap_socket(s, server_hostname="localhost", suppress_ragged_eofs=True)

    def post(self, data):
        """(status, body); status 0: the connection has ended without a whole head."""
        got = b""
        with self.connect() as s, contextlib.suppress(OSError):
            with contextlib.suppress(OSError):  # who refuses a body may not read it
                s.sendall((f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
                           f"Content-Type: {TYPE}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n")
                          .encode() + data)
            while piece := s.recv(65536):
                got += piece
        if b"\r\n\r\n" not in got:
            return 0, b""
        status, _, text = parse_response(got)
        return status, text

    def new(self, n=5):
        """A batch of new uploads."""
        first = len(self.made)
        self.made += [make(self.sender, first + i + 1, first + i + 1) for i in range(n)]
        return batch(self.centre, self.made[first:])

    def outcomes(self, answer):
        """Of the uploads in the answer; None if it is not one of a centre."""
        try:
            return [u["outcome"] for u in json.loads(answer[1])["uploads"]] if answer[0] == 200 else None
        except (ValueError, KeyError, TypeError):
            return None

    def is_exact(self):
        """Everything is sent once more, and has then been counted once."""
        answer = self.outcomes(self.post(batch(self.centre, self.made)))
        want = sum(range(1, len(self.made) + 1))
        got = calls_of(self.d).get(BUILDS[0], (0,))[0]
        return set(answer or ["nothing"]) <= {"counted", "known"} and got == want, (answer, want, got)


@contextlib.contextmanager
def behind(kind, changes=(), between=None):
    """(centre, what is between it and the proxy, a host). changes may name {path}, that of the socket."""
    with Daemon(*proxied()) as d:
        path = os.path.join(d.folder, "between")
        b = (between or Between)(path, d.http)
        try:
            with kind(path, [tuple(text.format(path=path) for text in change) for change in changes]) as proxy:
                yield d, b, Pusher(d, proxy, d.token("web-1", "--write"))
        finally:
            b.stop()


def simple(tap, kind):
    with behind(kind) as (d, _, p):
        data = p.new()
        got = p.outcomes(p.post(data)), p.outcomes(p.post(data))
        tap.point(got == (["counted"] * 5, ["known"] * 5), f"{kind.__name__}: a batch counts, and its repeat is "
                  "known", got)
        data, answers = p.new(), []
        threads = [threading.Thread(target=lambda: answers.append(p.outcomes(p.post(data)))) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        tap.point(sorted(answers) == [["counted"] * 5, ["known"] * 5],
                  f"{kind.__name__}: in flight twice it counts once", answers)
        status, said = p.post(b"x" * (20 * 1024 * 1024 + 1))
        tap.point(status == 413 and b"html" in said.lower(), f"{kind.__name__}: above 20 MiB the proxy answers 413",
                  (status, said[:200]))
        data = p.new()
        d.stop(signal.SIGKILL)
        status, said = p.post(data)
        d.start()
        tap.point(status in (502, 503, 504) and p.outcomes((status, said)) is None,
                  f"{kind.__name__}: without a centre it answers {status} by itself", said[:200])
        exact, why = p.is_exact()
        tap.point(exact, f"{kind.__name__}: all of it is there once", why)


def given_up(tap, kind):
    """The proxy answers 504 while the centre goes on."""
    with behind(kind, IMPATIENT[kind]) as (d, _, p):
        d.process.send_signal(signal.SIGSTOP)
        answer = p.post(p.new())
        d.process.send_signal(signal.SIGCONT)
        tap.point(answer[0] == 504 and p.outcomes(answer) is None,
                  f"{kind.__name__}: a centre that stands still is given up with 504", answer)
        exact, why = p.is_exact()
        tap.point(exact, f"{kind.__name__}: and all of it is there once", why)

    class Held(Between):
        """Gives no answer to a batch with uploads before it is told."""
        held = threading.Event()

        def answer(self, head, body):
            answer = self.ask(head, body)
            self.asked = len(body) > 200
            if self.asked:
                self.held.wait(LONG)
            return answer, True
    with behind(kind, IMPATIENT[kind], Held) as (d, b, p):
        answer = p.post(p.new())
        there = until(lambda: b.asked) and sum(calls[0] for calls in calls_of(d).values())
        b.held.set()
        tap.point(answer[0] == 504 and there == 15, f"{kind.__name__}: 504 comes after the commit", (answer, there))
        exact, why = p.is_exact()
        tap.point(exact, f"{kind.__name__}: and the repeat doubles nothing", why)


def repeated(tap, kind, seed):
    """The proxy itself sends a POST again when its answer is lost, cut off, or an error."""
    with behind(kind, AGAIN[kind], lambda path, http: Meddler(path, http, seed, 0.0)) as (_, b, p):
        b.rate = 0.6
        answers = [p.outcomes(p.post(p.new())) for _ in range(60)]
        b.rate = 0
        known = sum("known" in (a or []) for a in answers)
        tap.point(known > 0, f"{kind.__name__} sends again by itself: {known} of 60 batches were known at once; "
                  f"{dict(b.counts)}", answers)
        exact, why = p.is_exact()
        tap.point(exact, f"{kind.__name__}: nothing is lost and nothing doubled", why)


def relayed(tap, kind, seed):
    """A real host, with its relay, through a proxy that repeats, and a centre that is killed."""
    with behind(kind, AGAIN[kind], lambda path, http: Meddler(path, http, seed, 0.0)) as (d, b, p), \
            Daemon("--relay", p.proxy.at) as h:
        dice = random.Random(f"{seed}/relayed")
        relay = Relay(h, p.proxy.at, d.token("web-2", "--write"), p.proxy.ca)
        sender = Sender(h, random.Random(seed), pause=0.02)
        b.rate = 0.3
        sender.start()
        failed = 0
        for _ in range(20):
            failed += relay.once().returncode != 0
            if dice.random() < 0.2:
                d.stop(signal.SIGKILL)
                d.start()
        sender.ended, b.rate = True, 0
        sender.join(LONG)

        def settled():
            once, r = relay.once(), h.json("status", "--json")["store"]["relay"]
            return once.returncode == 0 and r["acknowledged"]["uploads"] == r["accepted"]["uploads"] == sender.uploads
        there = until(settled) and calls_of(d) == calls_of(h)
        tap.point(there and failed > 0,
                  f"{kind.__name__}: {sender.uploads} uploads of a host, {failed} of 20 rounds failed, "
                  f"{dict(b.counts)}: the centre has what the host has", (calls_of(d), calls_of(h), relay.once()))


def slow(tap):
    """Hosts that send a byte of a body and no more hold connections of nginx alone."""
    with behind(Nginx) as (d, _, p), contextlib.ExitStack() as stack:
        token = d.token("web-9", "--write")  # nginx holds at most 48 requests of one token
        head = (f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Type: {TYPE}\r\nContent-Length: 1000000\r\n\r\nx")
        for _ in range(400):
            stack.enter_context(p.connect()).sendall(head.encode())
        got = p.outcomes(p.post(p.new()))
        n = int(next(line.split()[1] for line in d.get("/metrics")[2].decode().splitlines()
                     if line.startswith("profd_http_connections ")))
        tap.point(got == ["counted"] * 5 and n <= 4,
                  f"400 slow senders: others send, and profd has {n} connections", got)


def main():
    seed = random.randrange(2**32)
    print(f"# seed {seed}", flush=True)
    with Tap() as tap:
        if why_not():
            tap.skip("hosts behind proxies", why_not())
            return
        for kind in (Nginx, Haproxy):
            simple(tap, kind)
            given_up(tap, kind)
            repeated(tap, kind, seed)
            relayed(tap, kind, seed)
        slow(tap)


if __name__ == "__main__":
    main()
