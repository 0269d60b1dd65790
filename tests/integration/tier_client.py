"""A question about past days whose client has gone ends in ClickHouse, too. One whose day is removed while it is asked
is asked a second time."""
import re
import socket
import threading

from harness import LONG, Daemon, Tap, free_port, until
from tier import Bed, fill, sealed, tier
from tier_bed import Between, Old
from windows import settled

ENDLESS = b"SELECT number FROM system.numbers WHERE cityHash64(number) = 1 FORMAT RowBinary"


def is_fetch(request):
    return b" counts" in request.partition(b"\r\n\r\n")[2][:200] and b"FROM sum" in request


def endless(reached):
    """A server whose queries for sums never end."""
    def damage(s, request, answer):
        if not is_fetch(request):
            s.sendall(answer())
            return
        head = request.partition(b"\r\n\r\n")[0]
        head = re.sub(rb"(?i)(content-length:) *\d+", rb"\1 %d" % len(ENDLESS), head)
        head = re.sub(rb"max_execution_time=\d+", b"max_execution_time=0", head)
        with socket.create_connection(("127.0.0.1", reached["port"])) as server:
            server.sendall(head + b"\r\n\r\n" + ENDLESS)
            reached["asked"].set()
            s.settimeout(LONG)
            reached["closed"] = s.recv(1) == b""  # the daemon waits until then
            reached["ended"].wait(LONG)  # and the server sees the connection open
    return damage


def running(ch):
    return int(ch.query("SELECT count() FROM system.processes WHERE query LIKE '%cityHash%' AND query NOT LIKE "
                        "'%processes%'"))


def hung_up(tap, ch, gate, d, port, reports):
    for name, report in zip(("the Unix socket", "TCP"), reports):
        reached = {"port": ch.http, "asked": threading.Event(), "ended": threading.Event()}
        gate.damage = endless(reached)
        s = socket.socket(socket.AF_UNIX if "Unix" in name else socket.AF_INET)
        s.connect(d.http if "Unix" in name else ("127.0.0.1", port))
        s.sendall(f"GET {report} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        asked = reached["asked"].wait(LONG) and until(lambda: running(ch) == 1)
        s.close()
        ended = until(lambda: running(ch) == 0 and reached.get("closed"), LONG / 2)
        tap.point(asked and ended, f"a client that hangs up on {name} ends its statement", (asked, ended, reached))
        reached["ended"].set()
        gate.damage = None
        tap.point(d.get(report)[0] == 200, "the next one is answered")


def lacking(tap, gate, d, report):
    """ClickHouse lacks the sums of a question once, or always."""
    asked = []

    def damage(s, request, answer):
        if is_fetch(request):
            asked.append(request)
            if len(asked) <= times:
                s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 0\r\n\r\n")
                return
        s.sendall(answer())

    want = d.get(report + "&limit=7")
    d.stop()
    d.start()  # without a cache of sums
    for times, what in ((1, "a question whose day leaves while it is asked is asked again"), (9, "but only once")):
        gate.damage = damage
        asked.clear()
        status, _, body = d.get(report + "&limit=7")
        good = status == 200 and body == want[2] if times == 1 else status == 503 and b"moved there" in body
        tap.point(good and len(asked) <= 2 + (times == 1), what, (len(asked), status, body[:400]))
        gate.damage = None
        d.stop()
        d.start()


def main():
    with Tap() as tap:
        if Old.why_not:
            tap.skip("18.16 ClickHouse", Old.why_not)
            return
        port = free_port()
        with Old() as ch, Between(ch.http) as gate, Daemon("--raw-age", "1s", "--http", f"127.0.0.1:{port}",
                                                           "--http-open", "--tier", ch.url(port=gate.http)) as d:
            bed = Bed()
            fill(d, bed, bed.uploads(120))
            assert settled(d) and d.ctl("tier", "init").returncode == 0 and sealed(d), (tier(d), d.logged())
            reports = [f"/api/v1/builds/{p.build}/report?format=csv" for p in bed.programs]
            hung_up(tap, ch, gate, d, port, reports)
            lacking(tap, gate, d, reports[2])


if __name__ == "__main__":
    main()
