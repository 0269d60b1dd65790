#!/usr/bin/python3
"""A centre: real hosts' uploads reach it through a relay that is played here. Whatever comes twice, in another order,
or while the centre is killed: its reports have what the hosts' reports have. `centre.py SECONDS SEED` goes on
longer, and uses 100,000 values of a label."""
import contextlib
import json
import os
import random
import signal
import sqlite3
import struct
import sys
import time
from urllib.parse import quote

from harness import Daemon, Tap, run
from judge import calls_of, difference, sums
from relaying import Sender, acknowledge, body, equation, fetch
from segment import resealed
from uploads import batch, connect, finish, post, request
from wire import Wire, field, sender_number, varint

OUTCOMES = {"counted": 0, "known": 0, "put-aside": 1, "conflict": 2}  # as ACKNOWLEDGE has them
ARCS = [f"{i:02x}" * 20 for i in range(1, 41)]  # builds with one arc each, so that a report's calls are those of an arc


class Relay:
    """Takes uploads of one host from its daemon to the centre's, as profd-relay does."""

    def __init__(self, host, centre, name):
        self.host, self.centre, self.name = host, centre, name
        self.token = centre.token(name, "--write")
        self.known, self.incarnation, self.backup, self.wait, self.number, self.sent = b"", b"", 0, 0, 1, []

    def batch(self, uploads=(), **head):
        return batch(self.known, uploads, self.incarnation, **{"number": self.number, **head})

    def learn(self, status, answer):
        if status == 200:
            self.known, self.incarnation = bytes.fromhex(answer["centre"]), bytes.fromhex(answer["incarnation"])
            self.backup, self.wait = answer["backed_up"], answer["wait_ms"]
        return status, answer

    def arrive(self, **head):
        """(status, answer) to a batch without uploads."""
        return self.learn(*post(self.centre, self.token, self.batch(**head)))

    def deliver(self, *uploads, **head):
        """(status, answer) to one with these."""
        return self.learn(*post(self.centre, self.token, self.batch(uploads, **head)))

    def fetch_all(self):
        """Sealed segments that are not acknowledged: [(epoch, sequence, bytes)]"""
        out, after, through = [], 0, 0
        with Wire(self.host.socket) as w:
            while True:
                kind, _, _, m = fetch(w, self, after, through)
                if kind != "SEGMENT":
                    raise RuntimeError(m.get(4))
                through, after, self.number = m.get(5, 0), m.get(1, 0), m.get(6, 0)
                if not after:
                    return out
                out.append((m[2], m[3], m[4]))

    def round(self, dice=None, kill=lambda: False):
        """Delivers and acknowledges what is sealed. Returns how many segments. kill(): break off."""
        status, answer = self.arrive()
        if status != 200:
            raise RuntimeError(answer)
        found = self.fetch_all()
        sending = list(found)
        if dice:  # in another order, some twice, some that were acknowledged before
            sending += dice.sample(found, len(found) // 2) + dice.sample(self.sent, min(3, len(self.sent)))
            dice.shuffle(sending)
        with contextlib.closing(connect(self.centre)) as s:
            s.sendall(request(self.token, self.batch([data for _, _, data in sending]), Connection="close"))
            if kill():
                return 0
            status, answer = self.learn(*finish(s))
        if status != 200:
            raise RuntimeError(answer)
        with Wire(self.host.socket) as h:
            for (epoch, sequence, _), said in zip(sending, answer["uploads"]):
                acknowledge(h, self, epoch, sequence, said["number"], OUTCOMES[said["outcome"]])
        self.sent = (self.sent + found)[-50:]
        return len(found)

    def settle(self):
        while self.round():
            pass


def upload(d, sender, sequence, build, calls):
    with Wire(d.socket) as w:
        w.send("UPLOAD", body(sender, sequence, build, 1, calls))
        while w.take()[0] != "ACK":
            pass


def simple(tap):
    with Daemon("--relay", "https://c") as a, Daemon("--relay", "https://c") as b, Daemon() as centre:
        relays = [Relay(a, centre, "a.example"), Relay(b, centre, "b.example")]
        senders = [sender_number(), sender_number()]
        for i in range(1, 21):
            for d, s in zip((a, b), senders):
                upload(d, s, i, ARCS[i % 5], i)
        for g in relays:
            g.settle()
        want, got = sums(a, b), calls_of(centre)
        tap.point(want == got and len(got) == 5, "the centre's report is the sum of the hosts'", difference(want, got))
        tap.point(60000 // 2 <= relays[0].wait <= 90000, "a host gets its slot", relays[0].wait)
        status = centre.json("status", "--json")["store"]["centre"]
        tap.point(status["hosts"] == 2 and status["counted"]["uploads"] == 40 and status["received"] > 0
                  and status["last_time"] and status["quarantined"] == 0, "status says what came", status)
        text = centre.ctl("status").stdout
        tap.point("centre   hosts 2, uploads counted 40" in text, "so does profctl status", text)
        metrics = centre.get("/metrics")[2].decode() + a.get("/metrics")[2].decode()
        wanted = ("profd_centre_hosts 2", "profd_centre_uploads_total 40", "profd_relay_outgoing_sealed 0",
                  'profd_relay_uploads{state="acknowledged"} 20',
                  f'profd_centre_received_total{{result="counted"}} {status["received"]}')
        tap.point(all(f"\n{line}\n" in metrics for line in wanted), "and the metrics of both ends", metrics)
        groups = {r["label_host"]: r["calls"] for r in centre.json("groups", ARCS[1], "--by", "host", "--json")["rows"]}
        tap.point(groups == {g.name: sum(i for i in range(1, 21) if i % 5 == 1) for g in relays},
                  "each host has its label", groups)
        tap.point(all(d.ctl("verify").returncode == 0 for d in (a, b, centre)), "verification finds nothing")
        relay = a.json("status", "--json")["store"]["relay"]
        tap.point(equation(relay) and relay["acknowledged"]["uploads"] == 20, "the hosts know it is there", relay)
        before = calls_of(centre)
        _, answer = relays[0].deliver(*(data for _, _, data in relays[0].sent))
        tap.point([u["outcome"] for u in answer["uploads"]] == ["known"] * len(relays[0].sent), "repeats are known",
                  answer)
        tap.point(calls_of(centre) == before, "and change nothing")
        first = relays[0].incarnation
        centre.stop(signal.SIGKILL)
        centre.start()
        tap.point(relays[0].round() == 0 and relays[0].incarnation == first, "a killed centre was not restored")
        tap.point(calls_of(centre) == want and centre.ctl("verify").returncode == 0, "it is all durable")


def crowded(tap):
    """Hosts send more values of a label than a tenant may use in an hour: pods that live for a moment."""
    most, at_once, values, hour = 100000, 2500, 0, time.time() // 3600  # profd(8)
    with Daemon("--relay", "https://c") as host, Daemon() as centre:
        relay = Relay(host, centre, "a.example")
        upload(host, sender_number(), 1, ARCS[0], 3)
        relay.arrive()
        (_, first, data), = relay.fetch_all()
        pod = lambda i, name: resealed(data[:-11] + field(2, first + i) + field(7, field(1, "k8s_pod_name")
                                                                             + field(2, name)) + data[-11:])
        for i in range(0, most, at_once):
            pods = [pod(k, f"web-{k}") for k in range(i, i + at_once)]
            status, answer = relay.deliver(*pods, number=first + most + 9)
            values += status == 200 and sum(u["outcome"] == "counted" for u in answer["uploads"])
        count = lambda: (centre.json("status", "--json")["store"]["relabelled_uploads"],
                         "\nprofd_relabelled_uploads_total 3\n" in centre.get("/metrics")[2].decode())
        before = count()
        _, answer = relay.deliver(*(pod(most + i, name) for i, name in enumerate(("a", "b", "a", "web-7"))))
        if time.time() // 3600 != hour:
            return crowded(tap)  # another hour began, in which values are new again
        tap.point(values == most and before == (0, False), f"a tenant may use {most} values of a label in an hour",
                  (values, before, centre.logged()))
        tap.point([u["outcome"] for u in answer["uploads"]] == ["counted"] * 4 and count() == (3, True),
                  "further ones count with the value other, which status and metrics tell", (answer, count()))
        found = {}
        for name in ("other", "a", "web-7"):
            done = centre.ctl("report", ARCS[0], "-l", f"k8s_pod_name={name}", "--json")
            report = json.loads(done.stdout) if done.returncode == 0 else {"totals": {}, "provenance": {}}
            found[name] = (report["totals"].get("calls"),
                           "label-left-out" in report["provenance"].get("inexact_reasons", ()))
        tap.point(found == {"other": (9, True), "a": (None, False), "web-7": (6, False)},
                  "a report of them is marked", found)
        tap.point(sum(c for (c, *_) in calls_of(centre).values()) == 3 * (most + 4), "no call is lost")


def changed(data):
    """The same segment with other uploads in it: another digest."""
    return resealed(data[:-11] + field(17, 99) + data[-11:])


def damaged(data):
    """Its last byte, one of its checksum, is another."""
    return data[:-1] + bytes([data[-1] ^ 1])


def refused(tap):
    with Daemon("--relay", "https://c") as host, Daemon() as centre, Wire(centre.socket) as w:
        status, answer = post(host, host.token("a.example", "--write"), batch())
        tap.point(status == 409 and "relay is configured" in answer["detail"], "what forwards is no centre", answer)
        relay, other, sender = Relay(host, centre, "a.example"), Relay(None, centre, "b.example"), sender_number()
        for i in range(1, 5):
            upload(host, sender, i, ARCS[i], i)
        relay.arrive()
        other.arrive()
        found = [data for _, _, data in relay.fetch_all()]
        tap.point(relay.deliver(found[0])[1]["uploads"][0]["outcome"] == "counted", "a segment counts")
        _, answer = other.deliver(found[0])
        tap.point(answer["uploads"][0]["outcome"] == "known", "its key is the tenant's: another host sends it again",
                  answer)
        _, answer = relay.deliver(changed(found[0]), damaged(found[1]), b"poison", found[3])
        got = [u["outcome"] for u in answer["uploads"]]
        tap.point(got == ["conflict", "put-aside", "refused", "counted"],
                  "a second content is a conflict; what cannot be read is put aside, or refused without a key", answer)
        got = calls_of(centre)
        tap.point(got == {ARCS[1]: (1, 1, 1), ARCS[4]: (4, 4, 4)}, "nothing of them is counted", got)
        report = json.loads(w.query(f"/api/v1/builds/{ARCS[1]}/report")[1])
        tap.point("upload-missing" in report["provenance"]["inexact_reasons"] and not report["provenance"]["exact"],
                  "and the report says that something is missing", report["provenance"])
        relay.arrive(number=5)
        relay.arrive(number=3)
        report = json.loads(w.query(f"/api/v1/builds/{ARCS[1]}/report")[1])
        tap.point("restored" in report["provenance"]["inexact_reasons"], "so it does if a host was restored",
                  report["provenance"])
        status = centre.json("status", "--json")["store"]["centre"]
        tap.point(status["quarantined"] == 1 and status["conflicts"] == 1 and status["refused"] >= 1,
                  "status counts them", status)
        tap.point("put aside" in centre.logged() and "another upload with this key was counted" in centre.logged(),
                  "and the log names them")
        tap.point(centre.ctl("verify").returncode == 0, "verification finds nothing")


def minutes(tap):
    """What hosts have counted lately can be asked for by minutes, as on the hosts."""
    def upload_at(d, sender, sequence, end, calls):
        with Wire(d.socket) as w:
            w.send("UPLOAD", body(sender, sequence, ARCS[0], 1, calls)
                   + b"".join(varint(n << 3 | 1) + struct.pack("<Q", t) for n, t in ((3, end - 10**9), (4, end))))
            while w.take()[0] != "ACK":
                pass

    def report(d, **asked):
        text = "&".join(f"{k}={time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(t))}" for k, t in asked.items())
        with Wire(d.socket) as w:
            r = json.loads(w.query(f"/api/v1/builds/{ARCS[0]}/report?{text}")[1])
        return r["totals"]["calls"], r["window"]["since"], r["window"]["until"]

    with Daemon("--relay", "https://c") as a, Daemon("--relay", "https://c") as b, Daemon() as centre:
        relays, now = [Relay(a, centre, "a.example"), Relay(b, centre, "b.example")], int(time.time()) // 60 * 60
        senders, truth = [sender_number(), sender_number()], {}
        for i in range(1, 41):
            for k, d in enumerate((a, b)):
                end = now - i * 60 + (17 * i + 31 * k) % 60
                truth[end] = truth.get(end, 0) + i + 100 * k
                upload_at(d, senders[k], i, end * 10**9 + 5, i + 100 * k)
        for g in relays:
            g.settle()
        at = lambda t: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t))
        for since, until in ((now - 900, now), (now - 1800, now - 900), (now - 870, now - 270)):
            first, last = since // 60 * 60, -(-until // 60) * 60
            calls, *window = report(centre, since=since, until=until)
            want = sum(n for t, n in truth.items() if first <= t < last)
            tap.point(calls == want and window[0].startswith(at(first)) and window[1].startswith(at(last)),
                      "a range of minutes is that of the hosts' uploads, and says where it begins and ends",
                      (calls, want, window, at(first), at(last)))
        tap.point(report(centre)[0] == sum(truth.values()) and centre.ctl("verify").returncode == 0,
                  "and all of it is there once")


def hosts_apart(tap):
    """A centre that keeps no functions per host still knows what each host has counted, and says what it lacks."""
    with Daemon("--host-detail", "some", start=False) as d:
        done = run(*d.command())
        tap.point(done.returncode == 78 and "must be auto, always or never" in done.stderr, "host-detail is checked",
                  done.stderr)
    with Daemon("--relay", "https://c") as a, Daemon("--relay", "https://c") as b, \
            Daemon("--host-detail", "never") as centre:
        relays = [Relay(a, centre, "a.example"), Relay(b, centre, "b.example")]
        senders = [sender_number(), sender_number()]
        for i in range(1, 21):
            for k, d in enumerate((a, b)):
                upload(d, senders[k], i, ARCS[i % 2], i + 50 * k)
        for g in relays:
            g.settle()
        tap.point(calls_of(centre) == sums(a, b), "its report is of all hosts")
        keys = ("uploads", "processes_started", "calls", "seconds")
        for build in ARCS[:2]:
            rows = {r["label_host"]: [r[k] for k in keys]
                    for r in centre.json("groups", build, "--by", "host", "--json")["rows"]}
            own = {g.name: [sum(r[k] for r in d.json("groups", build, "--by", "x", "--json")["rows"]) for k in keys]
                   for g, d in zip(relays, (a, b))}
            tap.point(rows == own, "groups by host has what each host has", (rows, own))
        only = centre.json("groups", ARCS[0], "--by", "host", "-m", 'host="b.example"', "--json")["rows"]
        tap.point([r["label_host"] for r in only] == ["b.example"], "and one host can be selected", only)
        for match, empty in (('host="a.example"', True), ('host!="a.example"', True), ('env=""', False)):
            with Wire(centre.socket) as w:
                report = json.loads(w.query(f"/api/v1/builds/{ARCS[0]}/report?match={quote(match)}")[1])
            reasons = report["provenance"]["inexact_reasons"]
            tap.point((report["totals"]["calls"] == 0) == empty and ("host-totals" in reasons) == empty,
                      f"a report of {match} says what it lacks", (report["totals"], reasons))
        said = centre.ctl("report", ARCS[0], "-m", 'host="a.example"').stderr
        tap.point("ask profd on the host for its functions" in said, "in one sentence", said)
        status = centre.json("status", "--json")["store"]["centre"]
        tap.point(status["host_detail"] is False and status["series"] == 4, "status says so, too", status)
        tap.point(centre.ctl("verify").returncode == 0, "verification finds nothing")


def restored(tap):
    """The centre is restored from a backup: hosts send again what it lacks."""
    with Daemon("--relay", "https://c") as host, Daemon() as centre:
        g, sender, copy = Relay(host, centre, "a.example"), sender_number(), os.path.join(centre.folder, "copy")
        for i in range(1, 13):
            upload(host, sender, i, ARCS[i % 3], i)
            if i == 6:
                g.settle()
                tap.point(centre.ctl("backup", copy).returncode == 0, "a backup is made")
        g.settle()
        before, first = calls_of(centre), g.incarnation
        tap.point(g.backup > 0, "hosts learn what is in the backup", g.backup)
        centre.stop()
        done = run(*centre.command(), "--restore", copy)
        centre.start()
        lost = calls_of(centre)
        g.settle()
        tap.point(done.returncode == 0 and lost != before and g.incarnation != first,
                  "a restored centre has another incarnation", (done.stderr, lost))
        tap.point(calls_of(centre) == before == calls_of(host) and centre.ctl("verify").returncode == 0,
                  "and gets again what it has lost, once", difference(before, calls_of(centre)))
        tap.point("upload-missing" not in reasons(centre), "nothing is marked", reasons(centre))
        with contextlib.closing(sqlite3.connect(copy)) as db, db:
            db.execute("UPDATE centre SET last=last-3*86400*1000000000")
        centre.stop()
        done = run(*centre.command(), "--restore", copy)
        centre.start()
        tap.point("upload-missing" in reasons(centre), "a backup that is older than hosts keep segments: it is marked",
                  (done.stderr, reasons(centre)))
        g.settle()
        tap.point(centre.ctl("verify").returncode == 0, "verification finds nothing")


def reasons(d):
    with Wire(d.socket) as w:
        return set(json.loads(w.query(f"/api/v1/builds/{ARCS[0]}/report")[1])["provenance"]["inexact_reasons"])


def killed(tap, seconds, seed):
    """Both ends are killed at random points, the centre between delivery and acknowledgement, too."""
    dice = random.Random(seed)
    with Daemon("--relay", "https://c") as a, Daemon("--relay", "https://c") as b, Daemon() as centre:
        hosts, kills, lost = (a, b), 0, 0
        relays = [Relay(a, centre, "a.example"), Relay(b, centre, "b.example")]
        senders = [Sender(d, random.Random(seed + i), ARCS, 1) for i, d in enumerate(hosts)]
        for s in senders:
            s.start()

        def kill(d):
            nonlocal kills
            d.stop(signal.SIGKILL)
            d.start()
            kills += 1
            return True

        end = time.monotonic() + seconds
        while time.monotonic() < end or kills < 8:
            try:
                dice.choice(relays).round(dice, lambda: dice.random() < 0.3 and kill(centre))
            except (OSError, RuntimeError, TypeError):
                lost += 1
            if dice.random() < 0.1:
                kill(dice.choice(hosts))
        for s in senders:
            s.ended = True
        for s in senders:
            s.join(60)
        for g in relays:
            g.settle()
        want, truth = sums(a, b), {}
        for s in senders:
            for (build, _), n in s.sent.items():
                truth[build] = truth.get(build, 0) + n
        got = calls_of(centre)
        tap.point(want == got and truth == {k: v[0] for k, v in got.items()},
                  f"{kills} kills, {lost} broken rounds, seed {seed}: truth = hosts = centre, by arc",
                  (difference(want, got), difference(truth, {k: v[0] for k, v in got.items()})))
        status = centre.json("status", "--json")["store"]["centre"]
        tap.point(status["counted"]["uploads"] == sum(s.uploads for s in senders) and not status["quarantined"],
                  f"uploads {status['counted']['uploads']}: none lost, none doubled", status)
        said = [d.ctl("verify") for d in (a, b, centre)]
        tap.point(all(x.returncode == 0 for x in said), "verification finds nothing", [x.stdout for x in said])


def control(tap):
    """What the judge must find: segments that are acknowledged before they are committed."""
    with Daemon("--relay", "https://c") as host, Daemon() as centre:
        g, sender = Relay(host, centre, "a.example"), sender_number()
        upload(host, sender, 1, ARCS[0], 5)
        g.settle()
        upload(host, sender, 2, ARCS[1], 7)
        g.arrive()
        found = g.fetch_all()
        centre.process.send_signal(signal.SIGSTOP)
        with contextlib.closing(connect(centre)) as s, Wire(host.socket) as h:
            s.sendall(request(g.token, g.batch([data for _, _, data in found])))
            for epoch, sequence, _ in found:
                acknowledge(h, g, epoch, sequence, 2, 0)
        centre.stop(signal.SIGKILL)
        centre.start()
        g.settle()
        tap.point(difference(calls_of(host), calls_of(centre)) == {ARCS[1]: ((7, 7, 7), None)},
                  "the judge finds what was acknowledged before its commit", (calls_of(host), calls_of(centre)))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 6
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with Tap() as tap:
        simple(tap)
        minutes(tap)
        if len(sys.argv) > 1:
            crowded(tap)
        hosts_apart(tap)
        refused(tap)
        restored(tap)
        killed(tap, seconds, seed)
        control(tap)


if __name__ == "__main__":
    main()
