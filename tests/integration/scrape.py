#!/usr/bin/env python3
"""/debug/pprof/profile: go tool pprof scrapes it unmodified, and gets what was counted in those seconds, of all
matching programs; what is stored, without waiting; who has gone, and too many who wait."""
import gzip
import json
import os
import re
import select
import shutil
import socket
import subprocess
import threading
import time

from harness import LONG, Daemon, Gmon, Tap, free_port, programs, symbols, until
from wire import fields  # noqa: E402

GO = next((t for t in ("/usr/lib/go-1.19/bin/go", shutil.which("go")) if t and os.path.exists(t)), None)


def gmon(d, exe, name, ticks, calls):
    """A gmon.out with ticks in leaf, called by main."""
    at = symbols(exe)
    low, high = at["__executable_start"][0] & ~3, (at["etext"][0] + 3) & ~3
    g = Gmon(low, high).tick(at["main"][0] + 8, ticks).arc(at["main"][0] + 8, at["main"][0], calls)
    return g.write(os.path.join(d.folder, name))


def top(d, url):
    """(function → seconds, the whole output) of go tool pprof -top."""
    done = subprocess.run([GO, "tool", "pprof", "-top", "-nodecount=1000", "-sample_index=cpu", "-unit=ms", url],
                          env=dict(os.environ, HOME=d.folder, PPROF_TMPDIR=d.folder, GOFLAGS="-mod=mod",
                                   GOCACHE=d.folder), capture_output=True, text=True, timeout=LONG)
    rows = re.findall(r"^ *([\d.]+)ms +[\d.]+% +[\d.]+% +[\d.]+ms +[\d.]+% +(\S+)", done.stdout, re.M)
    return {name: float(ms) for ms, name in rows}, done


def waiting(d, target, count=1):
    """Sockets that have asked and have no answer."""
    out = []
    for _ in range(count):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(LONG)
        s.connect(d.http)
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        out.append(s)
    return out


def answer(s):
    data = b""
    while piece := s.recv(65536):
        data += piece
    s.close()
    return data


with Tap() as tap:
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        folder = programs(d.folder)
        calc, cycle = (os.path.join(folder, name) for name in ("calc", "cycle"))
        url, path = f"http://127.0.0.1:{port}/debug/pprof/profile", "/debug/pprof/profile"
        got = d.get(path + "?seconds=1")
        tap.point(got[0] == 200 and got[2][:2] == b"\x1f\x8b" and b"nanoseconds" in gzip.decompress(got[2]),
                  "an empty daemon answers a profile without samples, in gzip", got)
        got = fields(gzip.decompress(d.get(path + "?since=now-1h")[2])).get(10, 0)
        tap.point(got == 0, "without an end it has no duration, rather than one below 0", got)
        before = gmon(d, calc, "before", 50, 1)
        assert d.ctl("upload", "-l", "team=a", "-e", calc, before).returncode == 0
        a_team = 50
        if GO:
            # Under load the uploads may come after the seconds: then there are more of them.
            for seconds in (4, 12, 50):
                result = []
                thread = threading.Thread(target=lambda: result.append(top(d, f"{url}?seconds={seconds}")))
                thread.start()
                time.sleep(seconds / 3)
                assert d.ctl("upload", "-l", "team=a", "-e", calc, gmon(d, calc, "one", 20, 2)).returncode == 0
                assert d.ctl("upload", "-l", "team=b", "-e", cycle, gmon(d, cycle, "two", 10, 3)).returncode == 0
                thread.join()
                rows, done = result[0]
                a_team += 20
                if sum(rows.values()) == 300:
                    break
            tap.point(done.returncode == 0 and sum(rows.values()) == 300,
                      "go tool pprof -top URL: what arrived in the seconds, of both programs, and nothing from before",
                      (rows, done))
            rows, done = top(d, url + "?since=now-1h&match=team%3D%22a%22")
            tap.point(done.returncode == 0 and sum(rows.values()) == 10 * a_team,
                      "since=: what is stored, by a label, at once", (rows, done))
        else:
            tap.skip("go tool pprof -top URL", "no go")
        got = d.get(path + "?seconds=1")
        tap.point(got[0] == 200 and b"calc" not in gzip.decompress(got[2]),
                  "a program without counts in the seconds is not part of the profile", got)
        for query, word in (("seconds=0", "seconds"), ("seconds=56", "55"), ("seconds=x", "seconds"),
                            ("seconds=1&since=now-1h", "combined"), ("match=x", "match"), ("debug=1", "debug")):
            got = d.get(f"{path}?{query}")
            tap.point(got[0] == 400 and word in json.loads(got[2])["detail"], f"{query}: 400", got)
        many = waiting(d, path + "?seconds=55", 65)
        refused = until(lambda: select.select(many, [], [], 1)[0])
        got = [answer(s) for s in refused]
        tap.point(len(got) == 1 and b" 503 " in got[0][:20] and b"the limits are 64" in got[0],
                  "of 65 requests that wait, one is refused", got)
        for s in many:
            s.close()
        one = until(lambda: (lambda s: s if not select.select([s], [], [], 1)[0] else answer(s) and None)(
            waiting(d, path + "?seconds=54")[0]))
        tap.point(one is not None, "those who have gone wait no longer")
        status = d.stop()
        tap.point(status == 0 and b"STOPPING" in answer(one), "the daemon stops, and says so to who waits", status)
