"""A start with a clock that is far ahead: it is said, neither ids nor days are removed, and tokens do not end."""
import json
import struct
import time

import clocks
from harness import Daemon, Tap, until
from wire import Wire, sender_number, upload, varint

A = "ab" * 20
DAY = 86400


def put(d, sender, number):
    """Sends an upload of now; "new" or "again"."""
    now = time.time_ns()
    body = upload(sender, number, ticks=1, build_id=A) + varint(3 << 3 | 1) + struct.pack("<Q", now - 10**9)
    with Wire(d.socket) as w:
        w.send("UPLOAD", body + varint(4 << 3 | 1) + struct.pack("<Q", now), 9)
        while True:
            kind, tag, _, m = w.take()
            if tag == 9:
                return kind if kind != "ACK" else "again" if m.get(1) else "new"


def status(d):
    return json.loads(d.get("/api/v1/status")[2])


def main():
    with Tap() as tap, Daemon("--raw-age", "1s", "--keep-age", "60s") as d:
        sender, env = sender_number(), d.env
        bearer = "Bearer " + d.token("quarter", "--read", "--expires", "90d")
        put(d, sender, 1)
        until(lambda: status(d)["raw_uploads"] == 0)
        d.stop()
        for days in (31, 500):
            d.env = dict(env, **clocks.moved(FAKETIME=f"+{days}d"))
            d.start()
            first = d.get("/api/v1/builds", Authorization=bearer)
            # With this keep-age, removals begin 0.6 s after the start; ids are looked at from the start on.
            until(lambda: status(d)["clock_ahead_seconds"] > 0)
            put(d, sender_number(), 1)
            until(lambda: status(d)["raw_uploads"] == 0)
            time.sleep(3)
            ready = json.loads(d.get("/readyz")[2])
            tap.point(put(d, sender, 1) == "again", f"{days} days ahead: the ids are known", d.logged()[-500:])
            tap.point(status(d)["retired_uploads"] == 0 and ready["status"] == "degraded"
                      and ready["clock_ahead_seconds"] > (days - 1) * DAY and "the clock is" in d.logged(),
                      f"{days} days ahead: no day is removed; the log and /readyz say why", (ready, status(d)))
            tap.point(first[0] == 200 == d.get("/api/v1/builds", Authorization=bearer)[0],
                      f"{days} days ahead: a token of 90 days has not ended, from the first request on", first)
            if days == 31:
                said = d.ctl("status").stdout
                tap.point("DEGRADED the clock is" in said and "--confirm-clock" in said, "profctl status says it", said)
            d.stop()
        d.env = env
        d.start()
        tap.point(status(d)["clock_ahead_seconds"] == 0 and json.loads(d.get("/readyz")[2])["status"] == "ready"
                  and put(d, sender, 1) == "again", "with the right clock nothing is said", d.logged()[-300:])
        d.stop()
        d.env = dict(env, **clocks.moved(FAKETIME="+500d"))
        d.start()
        until(lambda: status(d)["clock_ahead_seconds"] > 0)
        done = d.ctl("retention")
        tap.point(done.returncode == 64 and "--confirm-clock" in done.stderr, "retention needs its option", done)
        done = d.ctl("retention", "--confirm-clock")
        until(lambda: status(d)["clock_ahead_seconds"] == 0 and status(d)["retired_uploads"] > 0)
        tap.point(done.returncode == 0 and "days ahead" in done.stdout and "confirmed the clock" in d.logged()
                  and json.loads(d.get("/readyz")[2])["status"] == "ready",
                  "a clock that an operator confirms removes what is old", (done, d.logged()[-300:]))
        ended = d.get("/api/v1/builds", Authorization=bearer)
        tap.point(ended[0] == 401 and b"token quarter ended at" in ended[2], "and ends tokens", ended)
        done = d.ctl("retention", "--confirm-clock")
        tap.point(done.returncode == 65 and "not ahead" in done.stderr, "there is nothing more to confirm", done)


main()
