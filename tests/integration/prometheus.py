"""Prometheus: /metrics of a centre by host, with the real gate; promtool checks the names, the alerts and their unit
tests."""
import contextlib
import os
import re
import shutil
import socket
import sqlite3
import ssl
import struct
import tempfile
import time
import uuid

from harness import LONG, ROOT, Daemon, Tap, run, until
from relaying import body
from tls_bed import Authority, Bed, TlsWire, relay_once
from wire import Wire, field, sender_number, varint

ALERTS = os.path.join(ROOT, "schema/prometheus-alerts.yaml")
RULES = os.path.join(ROOT, "tests/integration/prometheus_rules.yaml")
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
MOST, DAY = 10000, 86400 * 10**9


def promtool(tap):
    done = run("promtool", "check", "rules", ALERTS)
    tap.point(done.returncode == 0, "promtool check rules accepts the alerts", done.stdout + done.stderr)
    done = run("promtool", "test", "rules", RULES)
    tap.point(done.returncode == 0, "promtool test rules: a lost host is told within 3 intervals, and each alert fires "
              "for its reason", done.stdout + done.stderr)
    late = open(ALERTS).read().replace("group_left () 2 *", "group_left () 3 *")
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "schema")), os.makedirs(os.path.join(folder, "tests/integration"))
        open(os.path.join(folder, "schema/prometheus-alerts.yaml"), "w").write(late)
        shutil.copy(RULES, os.path.join(folder, "tests/integration/"))
        done = run("promtool", "test", "rules", os.path.join(folder, "tests/integration/prometheus_rules.yaml"))
    tap.point(done.returncode != 0, "and the test fails with an alert that is later", done.stdout)


def samples(text):
    """{(name, labels): value}; every line must be one of the format."""
    out = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            name, labels, value = SAMPLE.match(line).groups()
            out[name, labels or ""] = float(value)
    return out


def scrape(d):
    status, headers, data = d.get("/metrics")
    if status != 200:
        raise RuntimeError((status, headers, data))
    return data.decode()


def of_host(found, host):
    """{name or name/result: value} of the families of hosts"""
    out = {}
    for (name, labels), value in found.items():
        if f'host="{host}"' in labels:
            result = re.search('result="([^"]*)"', labels)
            out[name.removeprefix("profd_host_") + ("/" + result.group(1) if result else "")] = value
    return out


def checked(tap, text, what):
    done = run("promtool", "check", "metrics", input=text)
    tap.point(done.returncode == 0 and not done.stdout + done.stderr, f"promtool check metrics finds nothing: {what}",
              done.stdout + done.stderr)


def handshakes(centre):
    return {re.search('result="([^"]*)"', labels).group(1): value for (name, labels), value
            in samples(scrape(centre)).items() if name == "profd_gate_handshakes_total"}


def known_names(tap, texts):
    """Every metric of the alerts exists."""
    there = {line.split()[2] for text in texts for line in text.splitlines() if line.startswith("# TYPE ")}
    used = set(re.findall(r"\bprofd_[a-z_]+", "".join(re.findall(r"expr: (?:\|\n(?:          .*\n)+|.*\n)",
                                                                 open(ALERTS).read()))))
    tap.point(len(used) > 10 and used <= there, "the alerts use metrics that exist", used - there)


def hosts(tap):
    with Daemon("--gate", "--relay-interval", "7s") as centre, Bed(centre.socket) as bed, \
            Daemon("--relay", "tls://c:1") as a:
        before = samples(scrape(centre))
        tap.point(before["profd_gate_up", ""] == 0 and not any(n.startswith("profd_gate_h") for n, _ in before)
                  and ("profd_centre_interval_seconds", "") not in before,
                  "before a gate has told anything, nothing is said of its handshakes", before)
        tap.point(bed.start() and until(lambda: samples(scrape(centre))["profd_gate_up", ""] == 1), "the gate is up",
                  bed.gate.logged())
        identity = uuid.uuid4().int
        relay = bed.relay(a, "a", bed.authority.host("a.example", identity))
        with Wire(a.socket) as w:
            w.send("UPLOAD", body(sender_number(), 1, "a1" * 20, 1, 5))
            until(lambda: w.take()[0] == "ACK")
        done = relay_once(relay)
        text = scrape(centre)
        found = samples(text)
        host = of_host(found, "a.example")
        now = time.time()
        tap.point(done.returncode == 0 and 0 <= host["lag_seconds"] < LONG
                  and abs(now - host["last_segment_timestamp_seconds"]) < LONG
                  and 0 <= host["backlog_seconds"] < LONG and host["refusals_total"] == 0
                  and 6 * 86400 < host["certificate_expiry_timestamp_seconds"] - now < 8 * 86400
                  and host["segments_total/counted"] > 0
                  and {host[f"segments_total/{r}"] for r in ("repeat", "put-aside", "conflict")} == {0},
                  "a host's lag, backlog, segments, refusals and certificate", (done, host))
        tap.point(f'identity="{identity:032x}"' in text and 'tenant="default"' in text, "with identity and tenant")
        tap.point(found["profd_centre_interval_seconds", ""] == 7 and found["profd_hosts", 'state="listed"'] == 1,
                  "the interval, and how many hosts are listed", found)
        checked(tap, text, "a centre")
        host_text = scrape(a)
        checked(tap, host_text, "a host")
        known_names(tap, (text, host_text))
        of_tokens(tap, centre)
        counts_segments(tap, centre, bed, identity)
        counts_handshakes(tap, centre, bed)
        centre.stop()
        bed.gate.stop()
        centre.start()
        again = of_host(samples(scrape(centre)), "a.example")
        tap.point("backlog_seconds" not in again and again["segments_total/counted"] == 0 and "lag_seconds" in again,
                  "after a restart counters begin at 0, and what is not known is not said", again)


def of_tokens(tap, centre):
    tokens = {t: centre.token(t, "--read", "--tenant", t) for t in ("all", "default", "shop")}
    answers = {t: centre.get("/metrics", Authorization=f"Bearer {token}") for t, token in tokens.items()}
    text = {t: body.decode() for t, (_, _, body) in answers.items()}
    tap.point(all(a[0] == 200 for a in answers.values()) and 'host="a.example"' in text["all"]
              and "profd_builds" in text["all"], "a token of all sees all metrics")
    tap.point('host="a.example"' in text["default"] and 'state="listed"} 1' in text["default"]
              and {n.split("_")[1] for n, _ in samples(text["default"])} <= {"host", "hosts"},
              "a token of a tenant sees its hosts, and nothing else", text["default"])
    tap.point("a.example" not in text["shop"] and 'state="listed"} 0' in text["shop"],
              "a token of another tenant does not see them", text["shop"])


def counts_segments(tap, centre, bed, identity):
    pair = bed.authority.host("b.example", identity + 1)
    with TlsWire(bed, pair) as w:
        answers = [arrive(w), *(deliver(w, n, b"no segment") for n in (1, 1, 0))]
    host = of_host(samples(scrape(centre)), "b.example")
    tap.point([a[0] for a in answers] == ["ADMIT", "ACKNOWLEDGE", "ACKNOWLEDGE", "NACK"]
              and host["segments_total/put-aside"] == 1 and host["segments_total/repeat"] == 1
              and host["refusals_total"] == 1, "quarantine, repeats and refusals of a host are counted",
              (answers, host))
    tap.point("backlog_seconds" not in host, "a relay does not state its oldest segment: no backlog is shown", host)


def arrive(w):
    """As a relay that does not state the age of its oldest segment."""
    w.send("ARRIVE", varint(3 << 3 | 1) + struct.pack("<Q", time.time_ns()) + field(4, 1) + field(5, 1) + field(6, 1))
    return w.take()


def deliver(w, sequence, data):
    w.send("DELIVER", field(2, b"\x01" * 12) + field(3, sequence) + field(4, data))
    return w.take()


def counts_handshakes(tap, centre, bed):
    until(lambda: handshakes(centre)["ok"] == 2)
    before = handshakes(centre)
    with contextlib.suppress(OSError, ssl.SSLError), \
            TlsWire(bed, Authority(bed.folder, "other").host("foreign.example")) as w:
        w.take()
    with contextlib.suppress(OSError), socket.create_connection(("localhost", bed.port), LONG) as s:
        s.sendall(b"GET / HTTP/1.1\r\n\r\n")
        s.recv(100)
    with socket.create_connection(("localhost", bed.port), LONG) as s:
        s.recv(100)  # until the gate closes it
    wanted = {"ok": 0, "untrusted": 1, "failed": 1, "revoked": 0, "late": 1, "crowded": 0}

    def told():
        after = handshakes(centre)
        return {k: after[k] - before[k] for k in after} == wanted
    tap.point(until(told), "the gate's failed handshakes are counted, by reason", (before, handshakes(centre)))
    bed.gate.stop()
    tap.point(until(lambda: samples(scrape(centre))["profd_gate_up", ""] == 0), "a gate that has ended is not up")


def bounded(tap):
    """10,000 hosts are listed, and their lines are bounded."""
    with Daemon("--gate") as centre:
        centre.stop()
        now = time.time_ns()
        with sqlite3.connect(os.path.join(centre.state, "profd.db")) as db:
            db.executemany("INSERT INTO fleet_host (identity, name, first, last, clock, number, restored, tenant, "
                           "machine, version, not_after) VALUES (?, ?, ?, ?, 0, 1, 0, 1, '', '', 0)",
                           [(i.to_bytes(16, "big"), f'h{i:05} "\\\n', now, now) for i in range(MOST + 5)]
                           + [(b"\xff" * 16, "gone", now, now - 31 * DAY)])
        db.close()
        centre.start()
        text = scrape(centre)
        found = samples(text)
        listed = [labels for name, labels in found if name == "profd_host_lag_seconds"]
        most = sum(name.startswith("profd_host_") for name, _ in found)
        tap.point(len(listed) == MOST and found["profd_hosts", 'state="unlisted"'] == 5
                  and found["profd_hosts", 'state="absent"'] == 1 and most <= 10 * MOST,
                  f"of {MOST + 6} hosts {MOST} are listed, in {most} series, and the others counted",
                  (len(listed), most, len(text)))
        tap.point('host="h00003 \\"\\\\\\n"' in listed[3], "names are escaped", listed[3])
        checked(tap, text, f"{len(text)} bytes")


def main():
    with Tap() as tap:
        promtool(tap)
        hosts(tap)
        bounded(tap)


main()
