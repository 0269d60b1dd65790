"""Prometheus: /metrics of a centre by host; promtool checks the names, the alerts and their unit tests."""
import os
import re
import shutil
import sqlite3
import tempfile
import time

from centre import Relay, damaged, upload
from harness import LONG, ROOT, Daemon, Tap, run
from wire import sender_number

ALERTS = os.path.join(ROOT, "schema/prometheus-alerts.yaml")
RULES = os.path.join(ROOT, "tests/integration/prometheus_rules.yaml")
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
MOST, DAY = 1000, 86400 * 10**9


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


def known_names(tap, texts):
    """Every metric of the alerts exists."""
    there = {line.split()[2] for text in texts for line in text.splitlines() if line.startswith("# TYPE ")}
    used = set(re.findall(r"\bprofd_[a-z_]+", "".join(re.findall(r"expr: (?:\|\n(?:          .*\n)+|.*\n)",
                                                                 open(ALERTS).read()))))
    tap.point(len(used) > 10 and used <= there, "the alerts use metrics that exist", used - there)


def hosts(tap):
    with Daemon("--relay-interval", "7s") as centre, Daemon("--relay", "https://c") as a:
        before = samples(scrape(centre))
        tap.point(not any(n.startswith("profd_centre") or n.startswith("profd_host") for n, _ in before),
                  "a daemon to which no host has come says nothing of hosts", before)
        relay = Relay(a, centre, "a.example")
        upload(a, sender_number(), 1, "a1" * 20, 5)
        relay.arrive()
        found = [data for _, _, data in relay.fetch_all()]
        relay.deliver(*found, oldest=time.time_ns())
        text = scrape(centre)
        found = samples(text)
        host = of_host(found, "a.example")
        now = time.time()
        tap.point(0 <= host["lag_seconds"] < LONG and abs(now - host["last_upload_timestamp_seconds"]) < LONG
                  and 0 <= host["backlog_seconds"] < LONG and host["refusals_total"] == 0
                  and host["received_total/counted"] > 0
                  and {host[f"received_total/{r}"] for r in ("repeat", "put-aside", "conflict")} == {0},
                  "a host's lag, backlog, uploads and refusals", host)
        identity = next(h["identity"] for h in centre.json("hosts", "--json")["rows"])
        tap.point(f'identity="{identity}"' in text and 'tenant="default"' in text, "with identity and tenant")
        tap.point(found["profd_centre_interval_seconds", ""] == 7 and found["profd_hosts", 'state="listed"'] == 1,
                  "the interval, and how many hosts are listed", found)
        checked(tap, text, "a centre")
        host_text = scrape(a)
        checked(tap, host_text, "a host")
        known_names(tap, (text, host_text))
        of_tokens(tap, centre)
        counts_uploads(tap, centre, a)
        centre.stop()
        centre.start()
        again = of_host(samples(scrape(centre)), "a.example")
        tap.point("backlog_seconds" not in again and again["received_total/counted"] == 0 and "lag_seconds" in again,
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


def counts_uploads(tap, centre, host):
    relay = Relay(host, centre, "b.example")
    upload(host, sender_number(), 1, "b2" * 20, 5)
    relay.arrive()
    found = damaged(relay.fetch_all()[-1][2])
    for _ in range(2):
        relay.deliver(found)
    relay.deliver(b"no upload")
    host = of_host(samples(scrape(centre)), "b.example")
    tap.point(host["received_total/put-aside"] == 1 and host["received_total/repeat"] == 1
              and host["refusals_total"] == 1, "quarantine, repeats and refusals of a host are counted", host)
    tap.point("backlog_seconds" not in host, "a relay does not state its oldest upload: no backlog is shown", host)


def bounded(tap):
    """1,000 hosts are listed, and 1,000 with something wrong: their lines are bounded, however many names there are."""
    with Daemon() as centre:
        centre.stop()
        now = time.time_ns()
        with sqlite3.connect(os.path.join(centre.state, "profd.db")) as db:
            db.executemany("INSERT INTO fleet_host (identity, name, first, last, clock, number, restored, tenant, "
                           "machine, version, copied) VALUES (?, ?, ?, ?, 0, 1, 0, 1, '', '', ?)",
                           [(i.to_bytes(16, "big"), f'h{i:05} "\\\n', now, now, 0) for i in range(MOST + 5)]
                           + [((1 << 64 | i).to_bytes(16, "big"), f"two{i:05}", now, now, now)
                              for i in range(MOST + 7)]
                           + [(b"\xff" * 16, "gone", now, now - 31 * DAY, 0)])
        db.close()
        centre.start()
        text = scrape(centre)
        found = samples(text)
        listed = [labels for name, labels in found if name == "profd_host_lag_seconds"]
        most = sum(name.startswith("profd_host_") for name, _ in found)
        states = [found["profd_hosts", f'state="{state}"'] for state in ("unlisted", "unlisted-wrong", "absent")]
        tap.point(len(listed) == 2 * MOST and states == [5, 7, 1] and most <= 20 * MOST,
                  f"of {2 * MOST + 13} hosts {2 * MOST} are listed, in {most} series, and the others counted",
                  (len(listed), most, len(text)))
        tap.point('host="h00003 \\"\\\\\\n"' in listed[3], "names are escaped", listed[3])
        checked(tap, text, f"{len(text)} bytes")


def main():
    with Tap() as tap:
        promtool(tap)
        hosts(tap)
        bounded(tap)


main()
