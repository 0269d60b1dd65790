#!/usr/bin/python3
"""POST /api/v1/uploads at a centre, over its HTTP socket: whatever is sent twice, cut off, refused or sent while the
centre is killed, each upload counts once, and only an answer after the commit says so. `uploads.py SECONDS SEED` goes
on longer."""
import concurrent.futures
import contextlib
import json
import os
import random
import re
import resource
import signal
import socket
import sqlite3
import sys
import threading
import time

from harness import BUILD, LONG, ROOT, Daemon, Tap, free_port, parse_response, profile, programs, run, until
from judge import calls_of
from relaying import body, window
from segment import Reader
from wire import Wire, encoded, field, sender_number, varint

BUILDS = [f"{i:02x}" * 20 for i in range(1, 6)]
PATH = "/api/v1/uploads"


def fixed(number, value):
    return varint(number << 3 | 1) + value.to_bytes(8, "little") if value else b""


def batch(centre=b"", uploads=(), incarnation=b"", host="", machine="", boot="", clock=None, number=1, held=0, oldest=0,
          version="1"):
    """The body of a POST."""
    return (field(1, centre) + field(2, incarnation) + field(3, host) + field(4, machine) + field(5, boot)
            + fixed(6, time.time_ns() if clock is None else clock) + field(7, number) + field(8, held)
            + fixed(9, oldest) + field(10, version) + b"".join(field(11, u) for u in uploads))


def request(token, data, **headers):
    fields = {"Host": "localhost", "Content-Type": "application/x-protobuf", "Content-Length": len(data),
              **{k.replace("_", "-"): v for k, v in headers.items()}}
    if token:
        fields["Authorization"] = f"Bearer {token}"
    lines = "".join(f"{k}: {v}\r\n" for k, v in fields.items())
    return f"POST {PATH} HTTP/1.1\r\n{lines}\r\n".encode() + data


def connect(d):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(LONG)
    s.connect(d.http)
    return s


def whole(s):
    """The one answer on a connection that then ends."""
    data = b""
    while piece := s.recv(65536):
        data += piece
    s.close()
    return data


def finish(s):
    """(status, JSON of the body) of that."""
    status, _, text = parse_response(whole(s))
    return status, json.loads(text)


def post(d, token, data, **headers):
    s = connect(d)
    s.sendall(request(token, data, Connection="close", **headers))
    return finish(s)


def make(sender, sequence, calls, build=BUILDS[0]):
    """An upload, encoded."""
    return body(sender, sequence, build, 1, calls) + window(int(time.time()))


class Host:
    """Sends with one token."""

    def __init__(self, d, *arguments, token=None, **head):
        self.d, self.head = d, head
        self.token = token or d.token(*arguments)
        self.centre = bytes.fromhex(self.post()[1]["centre"])

    def post(self, uploads=(), **head):
        centre = getattr(self, "centre", b"")
        return post(self.d, self.token, batch(**{"centre": centre, "uploads": uploads, **self.head, **head}))

    def send(self, *uploads, **head):
        """[(outcome, number)] of the answer."""
        status, answer = self.post(uploads, **head)
        if status != 200:
            raise RuntimeError(answer)
        return [(u["outcome"], u["number"]) for u in answer["uploads"]]


def number_of(d):
    return d.json("status", "--json")["store"]["centre"]["received"]


def hosts(d):
    return {h["name"]: h for h in d.json("hosts", "--json")["rows"]}


def simple(tap):
    with Daemon() as d:
        token = d.token("web-17", "--write")
        status, first = post(d, token, batch())
        keys = ["centre", "incarnation", "backed_up", "wait_ms", "went_back", "number", "uploads", "wanted", "send"]
        tap.point(status == 200 and list(first) == keys
                  and all(re.fullmatch("[0-9a-f]{32}", first[k]) for k in keys[:2])
                  and not first["uploads"] and not first["went_back"], "an empty batch gets the centre's name", first)
        tap.point(15000 <= first["wait_ms"] <= 90000, "and when to come again", first["wait_ms"])
        centre, sender = bytes.fromhex(first["centre"]), sender_number()
        sent = [make(sender, i, i, BUILDS[i % 2]) for i in range(1, 6)]
        data = batch(centre, sent, oldest=time.time_ns() - 10**9, boot="a" * 32, machine="b" * 32)
        status, answer = post(d, token, data)
        rows = answer["uploads"]
        tap.point(status == 200 and [(u["sequence"], u["outcome"], u["detail"]) for u in rows]
                  == [(i, "counted", "") for i in range(1, 6)], "each upload has an entry, in its order", answer)
        tap.point(all(u["sender"] == sender.to_bytes(8, "little").hex() + "07000000" for u in rows)
                  and [u["number"] for u in rows] == list(range(1, 6)), "with its id and its number", rows)
        want = {BUILDS[1]: (9, 9, 9), BUILDS[0]: (6, 6, 6)}
        tap.point(calls_of(d) == want, "the report has them", calls_of(d))
        status, again = post(d, token, data)
        tap.point([(u["outcome"], u["number"]) for u in again["uploads"]] == [("known", i) for i in range(1, 6)]
                  and calls_of(d) == want, "a repeat changes nothing", again)
        row = hosts(d)["web-17"]
        tap.point(row["tenant"] == "default" and row["machine_id"] == "b" * 32 and row["version"] == "1"
                  and row["last_upload"] and not row["two_machines_seen"], "the token's name is that of the host", row)
        groups = {r["label_host"]: r["calls"] for r in d.json("groups", BUILDS[0], "--by", "host", "--json")["rows"]}
        tap.point(groups == {"web-17": 6}, "and its label", groups)
        metrics = d.get("/metrics")[2].decode()
        wanted = ("profd_centre_hosts 1", "profd_centre_uploads_total 5",
                  'profd_centre_received_total{result="counted"} 5', 'profd_centre_received_total{result="repeat"} 5')
        tap.point(all(f"\n{line}\n" in metrics for line in wanted), "metrics count it", metrics)
        d.stop(signal.SIGKILL)
        d.start()
        status, again = post(d, token, data)
        tap.point([u["outcome"] for u in again["uploads"]] == ["known"] * 5 and calls_of(d) == want
                  and again["incarnation"] == first["incarnation"] and again["centre"] == first["centre"],
                  "all of it is durable", again)
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def refused(tap):
    with Daemon() as d:
        h = Host(d, "web-1", "--write")
        tokens = {"none": None, "a wrong one": "profd_" + "0" * 43, "the right read": d.token("r", "--read"),
                  "the right admin": d.token("a", "--admin")}
        upload = make(sender_number(), 1, 5)
        good = batch(h.centre, [upload])
        for name, token in tokens.items():
            status, answer = post(d, token, good)
            wanted = 403 if name.startswith("the right") else 401
            tap.point(status == wanted == answer["status"] and "write" in answer["detail"] or wanted == 401 == status,
                      f"with {name} nothing is taken", answer)
        for name, wanted, data in (
                ("is no protobuf", 400, b"\xff"), ("names another centre", 421, batch(b"x" * 16, [upload])),
                ("has a centre of another size", 400, batch(b"x" * 15)),
                ("has an incarnation of another size", 400, batch(h.centre, incarnation=b"x")),
                ("has uploads for no centre", 400, batch(b"", [upload])),
                ("has a clock beyond 2^63", 400, batch(h.centre, [upload], clock=2**63)),
                ("has a number beyond 2^62", 400, batch(h.centre, [upload], number=2**62 + 1)),
                ("has a boot-id with spaces", 400, batch(h.centre, [upload], boot="a b")),
                ("has a long machine-id", 400, batch(h.centre, [upload], machine="a" * 64)),
                ("has a text that is not UTF-8", 400, batch(h.centre, [upload]) + field(10, b"\xff")),
                ("is of another host", 403, batch(h.centre, [upload], host="web-2")),
                ("has too many fields", 413, batch(h.centre, [b""] * 9000)),
                ("offers too much", 413, batch(h.centre) + field(12, field(1, "ab" * 20)) * 257),
                ("is too large", 413, batch(h.centre, [upload]) + field(99, b"x" * (16 << 20)))):
            status, answer = post(d, h.token, data)
            tap.point(status == wanted == answer["status"] and len(answer["detail"]) > 20,
                      f"a batch that {name} is refused with {wanted}", answer)
        tap.point(number_of(d) == 0 and not calls_of(d), "nothing of them is stored")
        said = [line for line in d.logged().splitlines() if "uploads with token" in line]
        for _ in range(50):
            post(d, tokens["the right read"], good)
            h.post([upload], host="web-2")
        again = [line for line in d.logged().splitlines() if "uploads with token" in line]
        tap.point(len(said) == len(again) == 4, "the log has one line a minute for each status", "\n".join(again))
        tap.point(h.send(upload) == [("counted", 1)], "the same upload in a good batch counts")
        s = connect(d)
        s.sendall(request(h.token, batch(h.centre)))
        first = s.recv(65536)
        done = d.ctl("token", "remove", "web-1")
        s.sendall(request(h.token, batch(h.centre, [make(sender_number(), 1, 5)]), Connection="close"))
        status, answer = finish(s)
        tap.point(b" 200 " in first[:20] and done.returncode == 0 and status == 401 and number_of(d) == 1,
                  "a token that is removed counts no more, on an open connection, too", (done.stderr, answer))
    with Daemon("--relay", "https://c:1", start=False) as d, contextlib.suppress(RuntimeError):
        d.start()
        status, answer = post(d, d.token("web-1", "--write"), batch())
        tap.point(status == 409 and "relay" in answer["detail"], "a daemon that forwards is no centre", answer)


def names(tap):
    """Which host a batch is of; and what a host sends under another name, or with another token, is the same upload."""
    with Daemon() as d:
        sender = sender_number()
        uploads = [make(sender, i, i) for i in range(1, 4)]
        one, other = Host(d, "web-1", "--write"), Host(d, "web-2", "--write")
        tap.point(one.send(uploads[0], host="web-1") == [("counted", 1)], "a host may say its own name")
        tap.point(other.send(*uploads[:2]) == [("known", 1), ("counted", 2)],
                  "another token of the tenant doubles nothing")
        bank = Host(d, "vault", "--write", "--tenant", "bank")
        tap.point(bank.send(*uploads[:2]) == [("counted", 3), ("counted", 4)],
                  "the same ids of another tenant count by themselves")
        many = d.token("pods", "--write", "--hosts", "pod-*")
        for name, wanted in (("", 400), ("web-1", 403), ("x" * 256, 400)):
            status, answer = post(d, many, batch(host=name))
            tap.point(status == wanted, f"of a token for pod-*, host {name[:8]!r} gets {wanted}", answer)
        pods = [Host(d, token=many, host=f"pod-{i}") for i in range(2)]
        tap.point(pods[0].send(uploads[2]) == [("counted", 5)] and pods[1].send(uploads[2]) == [("known", 5)],
                  "hosts within the pattern send")
        rows = hosts(d)
        tap.point({n: r["tenant"] for n, r in rows.items() if n in ("web-1", "web-2", "vault", "pod-0")}
                  == {"web-1": "default", "web-2": "default", "vault": "bank", "pod-0": "default"},
                  "and are listed", rows)
        groups = {r["label_host"]: r["calls"] for r in d.json("groups", BUILDS[0], "--by", "host", "--json")["rows"]}
        tap.point(groups == {"web-1": 1, "web-2": 2, "vault": 3, "pod-0": 3}, "each upload is of who sent it first",
                  groups)
        labelled = [make(sender, 10 + i, 1) + field(7, field(1, "host") + field(2, "forged")) for i in range(3)]
        for upload in labelled:
            one.send(upload)
        said = [line for line in d.logged().splitlines() if "forged" in line]
        tap.point(len(said) == 1 and "web-1" in said[0], "another label host is said once, with both names", said)
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def poison(tap):
    with Daemon() as d:
        h, sender = Host(d, "web-1", "--write"), sender_number()
        good = [make(sender, i, i) for i in range(1, 4)]
        cut = make(sender, 9, 9) + field(8, b"\1no counts")
        status, answer = h.post([good[0], b"\xffpoison", b"", cut, make(sender, 1, 77), good[1], cut])
        outcomes = [u["outcome"] for u in answer["uploads"]]
        tap.point(status == 200 and outcomes == ["counted", "refused", "refused", "put-aside", "conflict", "counted",
                                                 "put-aside"], "each upload is judged by itself", answer)
        rows = answer["uploads"]
        tap.point(all(rows[i]["detail"] and not rows[i]["sender"] and not rows[i]["number"] for i in (1, 2))
                  and rows[3]["sequence"] == 9 and rows[3]["detail"] and rows[3]["number"] == rows[6]["number"] > 0
                  and rows[4]["number"] == rows[0]["number"], "what has an id is answered with it", rows)
        status = d.json("status", "--json")["store"]["centre"]
        tap.point(calls_of(d) == {BUILDS[0]: (3, 3, 3)} and status["quarantined"] == 1 and status["conflicts"] == 1,
                  "the good ones count", status)
        tap.point("put aside" in d.logged() and "of host web-1" in d.logged(), "the log names the host")
        tap.point(h.send(cut, make(sender, 1, 77), good[0], good[2])
                  == [("put-aside", rows[3]["number"]), ("conflict", 1), ("known", 1), ("counted", 4)],
                  "a repeat gets the same answers")
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def endless_counts(tap):
    """Two hosts send the largest counts that there are. Their sums stop there; all other tenants keep every
    check of it, and the backup can be restored."""
    for detail in ("always", "never"):
        with Daemon("--host-detail", detail) as d:
            first, second, other = (Host(d, name, "--write", "--tenant", tenant)
                                    for name, tenant in (("a", "vast"), ("b", "vast"), ("c", "small")))
            sent = [h.send(make(sender_number(), 1, n, build))[0][0] for h, n, build in
                    ((first, 2**63 - 1, BUILDS[0]), (second, 2**63 - 1, BUILDS[0]), (first, 2**63 - 1, BUILDS[1]),
                     (other, 7, BUILDS[2]))]
            copy = os.path.join(d.folder, "copy")
            tap.point(sent == ["counted"] * 4, f"counts of 2^63-1, host-detail {detail}", sent)
            for what in ("", "after a restart, ", "after a program is deleted, "):
                if "restart" in what:
                    d.stop()
                    d.start()
                elif what:
                    d.ctl("delete", "-y", BUILDS[0])
                done = d.ctl("verify")
                tap.point(done.returncode == 0, f"{what}verification finds nothing", done.stderr + done.stdout)
                report = d.json("report", BUILDS[2], "--json")
                tap.point(report["totals"]["calls"] == 7 and report["provenance"]["exact"],
                          "the report of the other tenant is exact", report["totals"])
            d.ctl("backup", copy)
            d.stop()
            done = run(*d.command(), "--restore", copy)
            tap.point(done.returncode == 0, "and the backup can be restored", done.stderr)


def large_sums(tap):
    """One batch changes many large sums. Each upload counts once, but not all in one transaction: what follows them
    is stored before the last of them."""
    with Daemon() as d:
        h, sums, arcs = Host(d, "web-1", "--write"), 14, 130000
        then = int(time.time()) - 50 * 3600
        one = (0, 0x1000, 0x2000, 1024, 100, "seconds", "s", {1: 1})
        large = encoded([one], [(0x100000 + 4 * i, 0x900000 + 4 * i, 1) for i in range(arcs)])

        def made(number, counts=None, build=BUILDS[0]):
            return (body(sender_number(), 1, build, 1, 1, counts=counts) + window(then)
                    + field(7, field(1, "n") + field(2, str(number))))
        tap.point(all(h.send(made(i, large))[0][0] == "counted" for i in range(sums)), f"{sums} sums of {arcs} arcs")
        batch_ = [made(i) for i in range(sums)] + [made(0, build=BUILDS[1])]
        sent = h.send(*batch_)
        numbers = [number for _, number in sent]
        tap.point(all(outcome == "counted" for outcome, _ in sent) and len(set(numbers)) == len(numbers),
                  "a batch that changes all of them", sent)
        tap.point(numbers[-1] < max(numbers), "a small sum does not wait for the last large one", numbers)
        tap.point(h.send(*batch_) == [("known", n) for n in numbers], "a repeat changes nothing")
        calls = {b: n[0] for b, n in calls_of(d).items()}
        tap.point(calls == {BUILDS[0]: sums * (arcs + 1), BUILDS[1]: 1}, "each upload counts once", calls)
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def repeated(tap):
    """In flight twice, and after answers that were cut off at every byte."""
    with Daemon() as d:
        h, sender = Host(d, "web-1", "--write"), sender_number()
        data = batch(h.centre, [make(sender, i, i) for i in range(1, 6)])
        two = [connect(d) for _ in range(2)]
        for s in two:
            s.sendall(request(h.token, data, Connection="close"))
        answers = [finish(s)[1]["uploads"] for s in two]
        outcomes = sorted(tuple(u["outcome"] for u in a) for a in answers)
        tap.point(outcomes == [("counted",) * 5, ("known",) * 5]
                  and [u["number"] for u in answers[0]] == [u["number"] for u in answers[1]],
                  "a batch that is in flight twice counts once", answers)
        whole = len(ask_whole(d, h))
        uploads = [make(sender, 100 + i, 1) for i in range(whole)]

        def cut(i):
            data = request(h.token, batch(h.centre, [uploads[i]]), Connection="close")
            s = connect(d)
            s.sendall(data)
            got = b""
            while len(got) < i and (piece := s.recv(i - len(got))):
                got += piece
            s.close()
            return h.send(uploads[i])[0][0]

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            outcomes = list(pool.map(cut, range(whole)))
        tap.point(set(outcomes) <= {"counted", "known"} and outcomes.count("known") > whole // 2,
                  f"an answer that is cut off at any of {whole} bytes is followed by a repeat", outcomes)
        data = request(h.token, batch(h.centre, [make(sender, 9999, 1)]), Connection="close")
        for i in range(0, len(data), 7):
            s = connect(d)
            s.sendall(data[:i])
            s.close()
        calls = {BUILDS[0]: (15 + whole,) * 3, BUILDS[4]: (1, 1, 1)}
        tap.point(calls_of(d) == calls, "each upload counts once; a request that is cut off stores nothing",
                  calls_of(d))
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def ask_whole(d, h):
    """The bytes of an answer to one upload."""
    s = connect(d)
    s.sendall(request(h.token, batch(h.centre, [make(sender_number(), 1, 1, BUILDS[4])]), Connection="close"))
    return whole(s)


def full(tap):
    """Large batches of a host, of which the last byte is to come, take all the memory that one may have: the next are
    told to come again, others are served, and nothing of what was refused is stored."""
    with Daemon() as d:
        h, other = Host(d, "web-1", "--write"), Host(d, "web-2", "--write", "--tenant", "bank")
        sender = sender_number()
        large = [make(sender, i, 1) + field(99, b"x" * (6 << 20)) for i in range(1, 9)]
        requests = [request(h.token, batch(h.centre, [u]), Connection="close") for u in large]
        connections = [connect(d) for _ in large]
        for s, data in zip(connections, requests):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused meanwhile
                s.sendall(data[:-1])
        outcome = other.send(make(sender, 1, 1))
        for s, data in zip(connections, requests):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data[-1:])
        answers = [parse_response(whole(s)) for s in connections]
        statuses = [status for status, _, _ in answers]
        tap.point(outcome[0][0] == "counted", "a host of another tenant is served", outcome)
        tap.point(set(statuses) == {200, 503} and all("retry-after" in f for n, f, _ in answers if n == 503),
                  "what is too much gets 503 and when to come again", statuses)
        wrong = []
        for upload, status in zip(large, statuses):
            _, answer = until(lambda: (lambda a: a if a[0] == 200 else None)(h.post([upload])))
            if (answer["uploads"][0]["outcome"] == "known") != (status == 200):
                wrong.append((status, answer))
        tap.point(not wrong, "nothing of a batch that got 503 is stored, all of one that got 200 is", wrong)
        tap.point(calls_of(d) == {BUILDS[0]: (9, 9, 9)}, "each counts once", calls_of(d))


def shares(tap):
    """A tenant sends more than its share of the space: it is refused, and nothing of another tenant is removed."""
    with Daemon("--keep-bytes", "16M", "--raw-bytes", "4M") as d:
        h, other = Host(d, "web-1", "--write", "--tenant", "vast"), Host(d, "web-2", "--write", "--tenant", "small")
        old = body(sender_number(), 1, BUILDS[1], 1, 7) + window(int(time.time()) - 3 * 86400)
        tap.point(other.send(old)[0][0] == "counted", "one tenant has data of three days ago")
        dice, status, sent = random.Random(1), 200, 0
        while status == 200 and sent < 150:
            arcs = [(0x100000 + 4 * i, 0x900000 + 4 * i, dice.getrandbits(50)) for i in range(30000)]
            one = (0, 0x1000, 0x2000, 1024, 100, "seconds", "s", {1: 1})
            status, answer = h.post([body(sender_number(), 1, BUILDS[0], 1, 1, counts=encoded([one], arcs))
                                     + window(int(time.time())) + field(7, field(1, "n") + field(2, str(sent)))])
            sent += status == 200
        tap.point(sent and status == 507 and "user-share" in answer["detail"], "the other's share ends", (sent, answer))
        tap.point(h.post()[0] == 200, "its hosts may connect without uploads")
        tap.point(other.send(make(sender_number(), 1, 1, BUILDS[2]))[0][0] == "counted", "the first may send on")
        tap.point(calls_of(d).get(BUILDS[1], [0])[0] == 7, "and all of its data is there", calls_of(d).get(BUILDS[1]))
        used = d.json("status", "--json")["store"]["largest_users"][0]["bytes"]
        tap.point(used < 12 << 20, "the share bounds what is stored", used)


def endless(tap):
    """New arcs and bins for ever in one series and hour: the sum stops growing, and says so; no count is lost."""
    with Daemon() as d:
        h, sender, sizes, calls, now = Host(d, "web-1", "--write"), sender_number(), [], 0, int(time.time())
        for i in range(4):
            rows = range(i * 120000, (i + 1) * 120000)
            data = encoded([(0, 0, 1 << 30, 1 << 30, 100, "seconds", "s", {k: 1 for k in rows})],
                           [(0x1000 + k, 0x9000, 1 + k % 2) for k in rows])
            outcome = h.send(body(sender, i + 1, BUILDS[0], 0, 0, counts=data) + window(now))
            calls += 180000
            report = d.json("report", BUILDS[0], "--json")
            with contextlib.closing(sqlite3.connect(os.path.join(d.state, "profd.db"))) as db:
                heads = [Reader(row[0][1:]).numbers(5) for row in db.execute("SELECT counts FROM rollup")]
            sizes.append(sum(arcs + bins for _, _, arcs, _, bins in heads))
            tap.point(outcome == [("counted", i + 1)] and report["totals"]["calls"] == calls
                      and report["totals"]["ticks"] == (i + 1) * 120000, f"{sizes[-1]} rows have all counts", report)
        reasons = report["provenance"]["inexact_reasons"]
        tap.point(sizes[:2] == [240000, 480000] and sizes[3] <= sizes[2] <= (1 << 19) + 2,
                  "the sum stopped growing", sizes)
        tap.point(reasons == ["calls-lost"], "the report says that arcs have no functions", reasons)
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing", d.ctl("verify").stdout)


def hungry(tap):
    """An upload for which there is no memory is refused alone: those that are stored with it count."""
    if BUILD.endswith(("-asan", "-tsan")):  # a sanitizer ends the process when there is no memory
        return
    with Daemon() as d:
        h, other = Host(d, "web-1", "--write"), Host(d, "web-2", "--write", "--tenant", "bank")
        arcs = encoded([(0, 0x1000, 0x2000, 1024, 100, "seconds", "s", {0: 1})],
                       [(0x1000 + k, 0x9000, 1) for k in range(200000)])
        large = body(sender_number(), 1, BUILDS[0], 0, 0, counts=arcs) + window(int(time.time()))
        requests = [request(x.token, batch(x.centre, [u]), Connection="close")
                    for x, u in ((h, large), (other, make(sender_number(), 1, 1)))]
        connections = [connect(d) for _ in requests]
        with open(f"/proc/{d.process.pid}/status") as f:
            size = int(re.search(r"VmSize:\s+(\d+) kB", f.read())[1]) << 10
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (size + (40 << 20), resource.RLIM_INFINITY))
        for s, data in zip(connections, requests):
            s.sendall(data)
        answers = [finish(s) for s in connections]
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        tap.point(answers[0][0] == 503 and "memory" in answers[0][1]["detail"], "the large one is refused", answers[0])
        tap.point([u["outcome"] for u in answers[1][1].get("uploads", [])] == ["counted"], "the other one counts",
                  answers[1])
        tap.point(h.send(large)[0][0] == "counted", "with more memory the large one counts, too")


def clones(tap):
    with Daemon() as d:
        h = Host(d, "web-1", "--write")
        seen = []
        for boot in ("a" * 32, "b" * 32, "b" * 32, "c" * 32, "b" * 32):
            h.post(boot=boot)
            seen.append(bool(hosts(d)["web-1"]["two_machines_seen"]))
        tap.point(seen == [False] * 4 + [True], "boot-ids that come in turns are two machines", seen)
        tap.point("two machines" in d.ctl("hosts").stdout and 'profd_host_two_machines{host="web-1"' in
                  d.get("/metrics")[2].decode(), "profctl hosts and metrics say so", d.ctl("hosts").stdout)


def restored(tap):
    """A host whose database went back is told; a centre that was restored gets again what it lacks."""
    with Daemon() as d:
        h, sender, copy = Host(d, "web-1", "--write"), sender_number(), os.path.join(d.folder, "copy")
        uploads = [make(sender, i, i) for i in (1, 2)]
        bank, reader = Host(d, "vault", "--write", "--tenant", "bank"), d.token("r", "--read", "--tenant", "bank")
        bank.send(make(sender, 9, 1))
        report = f"/api/v1/builds/{BUILDS[0]}/report"
        before = d.get(report, Authorization=f"Bearer {reader}")
        h.send(uploads[0], number=10)
        _, answer = h.post(held=11, number=12)
        tap.point(not answer["went_back"] and answer["number"] == 10, "a host whose number is as before is as it was",
                  answer)
        _, answer = h.post(held=8, number=12)
        tap.point(answer["went_back"] and answer["number"] == 10, "one that starts with an older one went back", answer)
        _, repeat = h.post(held=8, number=12)
        tap.point(repeat["went_back"], "it may ask again")
        for _ in range(100):
            h.post(held=8, number=12)
        said, after = d.logged().count("web-1 was restored"), d.get(report, Authorization=f"Bearer {reader}")
        tap.point(0 < said < 50, "the log does not have each of many such questions", said)
        tap.point(before[0] == 200 and (before[1]["etag"], before[2]) == (after[1]["etag"], after[2]),
                  "reports of another tenant stay valid", (before, after))
        tap.point(hosts(d)["web-1"]["restored"] is not None and "host web-1 was restored" in d.logged(), "it is said")
        tap.point(d.ctl("backup", copy).returncode == 0 and h.post()[1]["backed_up"] == 2, "hosts learn of a backup")
        first = h.send(uploads[1])
        before = h.post()[1]
        d.stop()
        done = run(*d.command(), "--restore", copy)
        d.start()
        after = h.post()[1]
        tap.point(done.returncode == 0 and after["centre"] == before["centre"]
                  and after["incarnation"] != before["incarnation"],
                  "a restored centre has its name and another incarnation", (done.stderr, before, after))
        tap.point(h.send(*uploads) == [("known", 2), ("counted", 3)]
                  and first == [("counted", 3)], "and takes again what it lost")
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def manual(tap):
    """The examples of profd-protocol(7), as they are printed."""
    with open(os.path.join(ROOT, "proto/profd-protocol.7"), encoding="utf-8") as f:
        blocks = [b.replace("\\e", "\\") for b in re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", f.read(), re.S | re.M)]
    curl, python = [b for b in blocks if "CENTRE" in b]
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}") as d:
        env = dict(d.env, TOKEN=d.token("web-1", "--write"), CENTRE=f"http://127.0.0.1:{port}")
        done = run("bash", "-c", curl.removeprefix("$ "), env=env)
        tap.point(len(json.loads(done.stdout or "{}").get("centre", "")) == 32, "curl gets the centre's name", done)
        done = run("/usr/bin/python3", "-c", python, env=env)
        tap.point("'outcome': 'counted', 'number': 1" in done.stdout and calls_of(d) == {"ab" * 20: (0, 5, 0)},
                  "a short program sends an upload", (done.stdout, done.stderr, calls_of(d)))


def symbols(tap):
    """Hosts are asked for the symbols of what they sent, offer them, and put them."""
    with Daemon() as d, Daemon("--relay", "https://c:1") as source:
        exe = os.path.join(programs(source.folder), "sorter")
        done = source.ctl("upload", "-e", exe, profile(source.folder, exe, (), 1))
        build = source.json("builds", "--json")["rows"][0]["build_id"]
        with Wire(source.socket) as w:
            w.send("FETCH_OBJECT", field(1, build))
            parsed = w.take()[3]
        tap.point(done.returncode == 0 and len(parsed[3]) == parsed[2], "a host has parsed symbols", done.stderr)
        h, other = Host(d, "web-1", "--write"), Host(d, "web-2", "--write")
        status, answer = h.post([make(sender_number(), 1, 5, build)])
        tap.point(answer["wanted"] == [build] and not answer["send"], "those of a new build are wanted", answer)
        data = batch(h.centre) + field(12, field(1, build) + field(2, parsed[1]) + field(3, parsed[2]))
        status, answer = post(d, h.token, data)
        tap.point(answer["send"] == [build] and not answer["wanted"], "an offer of them is taken", answer)

        def put(host, kind="application/vnd.profd.symbols", query=""):
            s = connect(d)
            head = request(host.token, parsed[3], Connection="close", Content_Type=kind)
            s.sendall(head.replace(f"POST {PATH}".encode(), f"PUT /api/v1/builds/{build}/symbols{query}".encode(), 1))
            return finish(s)

        status, answer = put(h, kind="application/octet-stream")
        tap.point(status == 403 and "right admin" in answer["detail"], "no executable of a host is taken", answer)
        status, answer = put(other)
        tap.point(status == 403, "nor symbols of another host's build", answer)
        status, answer = put(h, query="?host=web-2")
        tap.point(status == 403, "nor as another host", answer)
        status, answer = put(h)
        tap.point(status == 200 and answer["build_id"] == build, "the host's own are stored", answer)
        named = json.loads(d.get(f"/api/v1/builds/{build}/functions?name=main")[2])["rows"]
        tap.point(len(named) == 1, "and name functions", named)
        status, answer = post(d, h.token, data)
        tap.point(status == 200 and not answer["send"], "they are not asked for again", answer)

        full = Host(d, "web-3", "--write")
        objects_at_most(tap, d, full, lambda: put(full), build)


def objects_at_most(tap, d, h, put, build):
    """A host offers symbols of 4,096 builds, and of 512 MB, and no more. put() sends those of build."""
    most, size, each = 4096, 512 << 20, 32 << 20
    builds = [f"{i:040x}" for i in range(1, most + 1)]

    def of(sequence, ids):
        """An upload of a program with these libraries."""
        return make(h.sender, sequence, 1, build) + b"".join(field(6, field(1, i) + field(2, "/lib/x.so")) for i in ids)

    def offer(*offers):
        """Of which builds the symbols are asked for. Size 0: the host does not have them."""
        data = b"".join(field(12, field(1, i) + (field(2, b"h" * 32) + field(3, n) if n else b"")) for i, n in offers)
        status, answer = post(d, h.token, batch(h.centre) + data)
        return answer["send"] if status == 200 else answer

    h.sender = sender_number()
    # Few libraries in each program: whatever is said of one, reports with any of them are new.
    outcomes = [outcome for outcome, _ in h.send(*[of(1 + i // 64, builds[i:i + 64]) for i in range(0, most, 64)])]
    asked = [offer(*[(i, 1) for i in builds[k:k + 256]]) for k in range(0, most, 256)]
    tap.point(set(outcomes) == {"counted"} and all(asked), f"a host offers symbols of {most} builds", asked)
    said = offer((build, 5)), put(), offer((builds[7], 2))
    tap.point(said[0] == [] and said[1][0] == 422 and f"{most} parsed objects" in said[1][1]["detail"]
              and said[2] == [builds[7]], "those of one more are not asked for and not taken; others may change", said)
    said = offer((builds[7], 0)), put(), offer((builds[7], 2))
    tap.point(said[0] == [] and said[1][0] == 200 and said[2] == [], "they take the place of others", said)
    for k in range(0, most, 256):
        offer(*[(i, 0) for i in builds[k:k + 256]])
    asked = [offer((i, each)) for i in builds[:size // each - 1]]
    said = offer((builds[99], each)), offer((builds[99], each + 1)), offer((builds[99], each - (1 << 20)))
    tap.point(all(asked) and said == ([], [], [builds[99]]), f"and of {size >> 20} MB in all", (asked, said))
    tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def killed(tap, seconds, dice):
    """Hosts send and repeat until they are answered, while the centre is killed."""
    with Daemon() as d:
        names = [Host(d, f"web-{i}", "--write") for i in range(4)]
        sent, ended = {}, threading.Event()

        def go(h, seed):
            own, sender, sequence = random.Random(seed), sender_number(), 0
            while not ended.is_set():
                uploads = []
                for _ in range(own.randrange(1, 5)):
                    sequence += 1
                    uploads.append((own.choice(BUILDS), own.randrange(1, 9), sequence))
                data = [make(sender, s, n, b) for b, n, s in uploads]
                while True:
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        if h.post(data)[0] == 200:
                            break
                    time.sleep(0.02)
                for build, n, _ in uploads:
                    sent[build, h] = sent.get((build, h), 0) + n

        threads = [threading.Thread(target=go, args=(h, dice.random())) for h in names]
        for t in threads:
            t.start()
        kills, until_then = 0, time.monotonic() + seconds
        while time.monotonic() < until_then or kills < 3:
            time.sleep(dice.random() * 0.5)
            d.stop(signal.SIGKILL)
            d.start()
            kills += 1
        ended.set()
        for t in threads:
            t.join()
        want = {b: sum(n for (build, _), n in sent.items() if build == b) for b in BUILDS}
        got = {b: calls[0] for b, calls in calls_of(d).items()}
        tap.point(got == {b: n for b, n in want.items() if n}, f"after {kills} kills each upload counts once",
                  (want, got))
        tap.point(d.ctl("verify").returncode == 0, "verification finds nothing")


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    print(f"# seed {seed}", flush=True)
    parts = (simple, refused, names, poison, endless_counts, large_sums, repeated, full, shares, endless, hungry,
             clones, restored, symbols, manual)
    if os.environ.get("PROFD_TEST_REST"):  # the others run under the sanitizers
        parts = (hungry, manual)
    with Tap() as tap:
        for part in parts:
            part(tap)
        killed(tap, seconds, random.Random(seed))


if __name__ == "__main__":
    main()
