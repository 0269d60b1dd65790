"""Live processes: what they counted comes through socket and store exactly, however they end and however often the
daemon does. ATTACH_KILLS=1000 makes the daemon die that often."""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import harness
from harness import BUILD, LONG, ROOT, Daemon, Tap, run, until as wait_for
from memory import Attached, Counter, Memory, refused_page
from wire import Wire

sys.path.insert(0, os.path.join(ROOT, "tests", "collect"))
from bed import Bed  # noqa: E402


def sync(d):
    """Whatever ended before now is durable when this returns."""
    with Wire(d.socket) as w:
        w.send("SYNC", tag=9)
        while (answer := w.take()) and answer[1] != 9:
            pass
    return answer and answer[0]


def get(d, target):
    """A daemon that was just started may not have opened its second socket yet."""
    end = time.monotonic() + LONG
    while True:
        try:
            return d.get(target)
        except (ConnectionRefusedError, FileNotFoundError):
            if d.process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.01)


def processes(d, query=""):
    status, _, body = get(d, "/api/v1/processes" + query)
    return json.loads(body)["rows"] if status == 200 else (status, body)


def calls(d, exe):
    """(calls by function, calls_exact) as its report says; ({}, None) before there is one."""
    done = d.ctl("report", exe, "--json")
    if done.returncode:
        return {}, None
    report = json.loads(done.stdout)
    return {f["name"]: f["calls"] + f["self_calls"] for f in report["functions"]}, report["provenance"]["calls_exact"]


def total(d, name):
    """Calls of the builds of this name."""
    return sum(r["calls"] for r in d.json("builds", "--json")["rows"] if r["name"] == name)


class Yard:
    """A daemon and programs that count their own calls."""

    def __init__(self, d, bed):
        self.d, self.bed = d, bed
        self.env = dict(bed.env(), PROFD_SOCKET=d.socket, PROFD_RATE="0")
        self.exe = bed.build("truth.c", "-pg", "-rdynamic")

    def run(self, *arguments):
        return run(self.exe, *arguments, env=self.env, cwd=self.bed.folder)

    def truth(self):
        sums = {}
        for name in os.listdir(self.bed.folder):
            if name.startswith("truth."):
                for f, n in self.bed.truth(int(name[6:])).items():
                    sums[f] = sums.get(f, 0) + n
        return sums

    def differs(self):
        """What the report says otherwise than the processes."""
        got, exact = calls(self.d, self.exe)
        truth = self.truth()
        wrong = {f: (n, got.get(f)) for f, n in truth.items() if got.get(f) != n}
        return wrong if truth else "nothing was counted", exact


def ends(tap):
    """Every way to end, each once."""
    ways = ["threads", "_exit", "quick_exit", "abort", "segv", "term", "kill", "exec", "vfork", "forks"]
    with Daemon() as d, Bed(harvester=False) as bed:
        yard = Yard(d, bed)
        tap.point(d.ctl("symbols", yard.exe).returncode == 0, "names of the program are there")
        for way in ways:
            yard.run(way, "3", "2000")
            answer = sync(d)
            wrong, exact = yard.differs()
            tap.point(answer == "ACK" and wrong == {} and exact is True,
                      f"{way}: behind the SYNC every call is in the report", (answer, wrong, exact, d.logged()))
        live = wait_for(lambda: not processes(d) and [1])
        tap.point(bool(live), "all of them have ended", processes(d))
        for _ in range(20):
            subprocess.run([yard.exe, "kill", "1", "10"], env=yard.env, cwd=bed.folder)
            if sync(d) != "ACK" or yard.differs()[0]:
                tap.point(False, "a SYNC came too early", yard.differs())
                break
        else:
            tap.point(True, "20 processes that kill themselves: each SYNC waits for its own")
        sixteen = [subprocess.Popen([yard.exe, "_exit", "1", "500"], env=yard.env, cwd=bed.folder) for _ in range(16)]
        for p in sixteen:
            p.wait()
        tap.point(sync(d) == "ACK" and yard.differs()[0] == {}, "16 at once likewise", yard.differs())
        rows = d.json("builds", "--json")["rows"]
        started = sum(r["processes_started"] for r in rows if r["name"] == yard.exe)
        truths = sum(n.startswith("truth.") for n in os.listdir(bed.folder))
        tap.point(started == truths, f"{started} processes are known, as many as there were", truths)
        check = d.ctl("verify")
        tap.point(check.returncode == 0, "what is stored adds up", check.stdout + check.stderr)


def for_ever(tap):
    """A process that never exits; a pause; the list."""
    with Daemon("--harvest-interval", "1s") as d, Bed(harvester=False) as bed:
        exe = bed.build("steady.c", "-pg", "-rdynamic")
        env = dict(bed.env(), PROFD_SOCKET=d.socket, PROFD_LABEL_team="attach", PROFD_RATE="99")
        p = subprocess.Popen([exe, "spin"], env=env, cwd=bed.folder, stdout=subprocess.PIPE)
        try:
            rows = wait_for(lambda: [r for r in processes(d) if r["calls"] > 0 and r["name"].endswith("steady")])
            tap.point(len(rows) == 1 and rows[0]["pid"] == p.pid and rows[0]["state"] == "counting"
                      and rows[0]["uid"] == os.getuid(), "it is listed while it counts", rows)
            r = rows[0]
            keys = ("instance parent pid pid_inside uid build_id name labels started age_seconds state mode rate "
                    "rate_asked calls ticks calls_per_second cpu_seconds overhead overhead_below exact calls_exact "
                    "ticks_exact why memory_bytes harvested").split()
            tap.point(list(r) == keys and r["labels"] == {"team": "attach", "host": socket.gethostname()}
                      and r["memory_bytes"] > 0 and r["mode"] == "cpu" and r["rate"] == 99,
                      "with everything that people ask for", r)
            more = wait_for(lambda: (n := processes(d)) and n[0]["calls"] > r["calls"] and n[0]["calls_per_second"] > 0
                            and n)
            tap.point(bool(more), "and its counts grow", processes(d))
            tap.point(processes(d, f"?pid={p.pid}") and not processes(d, "?pid=1")
                      and processes(d, "?label.team=attach")
                      and not processes(d, "?label.team=other") and processes(d, "?match=team%3D~%22att.*%22"),
                      "filters: pid, label, match")
            answer = os.path.join(d.folder, "processes.json")
            with open(answer, "wb") as f:
                f.write(d.get("/api/v1/processes")[2])
            check = run("/usr/bin/python3", os.path.join(ROOT, "tests/integration/openapi_check.py"),
                        "/api/v1/processes", answer)
            tap.point(check.returncode == 0, "as openapi.json says", check.stdout + check.stderr)
            with Wire(d.socket) as w:
                status, body = w.query("/api/v1/processes?limit=1")
            tap.point(status == 200 and len(json.loads(body)["rows"]) == 1, "the same over the protocol", body)
            bad = [get(d, "/api/v1/processes" + q) for q in ("?pid=x", "?nothing=1", "?cursor=zz", "?match=team",
                    "?limit=x", "?pid=1&pid=2")]
            tap.point([b[0] for b in bad] == [400] * 6, "what makes no sense is refused", [b[2] for b in bad])
            pause(tap, d, p)
        finally:
            p.kill()
            p.wait()
        tap.point(sync(d) == "ACK" and processes(d) == [], "killed, it is gone behind a SYNC")
        got, _ = calls(d, exe)
        truth = bed.truth(p.pid)
        # what was not counted during the pauses is missing; nothing else is: each of two pauses, each of their ends and
        # the end of the process may come between a call of middle and its call of leaf
        tap.point(0 < got["leaf"] <= truth["leaf"] and abs(got["leaf"] - got["middle"]) <= 5,
                  "the report has what was counted", (got, truth))


def admin(d, verb, *words):
    with Wire(d.socket) as w:
        from wire import field
        w.send("ADMIN", field(1, verb) + b"".join(field(2, x) for x in words), 3)
        kind, _, _, m = w.take()
    return (kind, json.loads(m[4])["rows"]) if kind == "REPLY" else (kind, m.get(1), m.get(4, b"").decode())


def pause(tap, d, p):
    kind, rows = admin(d, "pause", str(p.pid))
    tap.point(kind == "REPLY" and [r["pid"] for r in rows] == [p.pid] and rows[0]["state"] == "paused",
              "pause by number", rows)

    def still():
        """No call between two harvests."""
        a = processes(d)[0]
        b = wait_for(lambda: (n := processes(d)[0])["harvested"] > a["harvested"] and n)
        return b and a["calls"] == b["calls"] and b["state"] == "paused"
    tap.point(wait_for(still), "and the counts stand still", processes(d))
    instance = processes(d)[0]["instance"]
    kind, rows = admin(d, "resume", instance[:8], "rate=50")
    before = processes(d)[0]["calls"]
    tap.point(kind == "REPLY" and rows[0]["rate_asked"] == 50 and wait_for(lambda: processes(d)[0]["calls"] > before),
              "resume by instance, with a rate: they go on", processes(d))
    kind, rows = admin(d, "pause", "team=attach")
    ok = kind == "REPLY" and len(rows) == 1
    kind, rows = admin(d, "resume", "team=attach", str(p.pid))
    tap.point(ok and kind == "REPLY" and rows[0]["state"] == "counting", "by label; by label and number", rows)
    refused = [admin(d, *words) for words in (("pause", "1"), ("pause", "team=other"),
                                              ("resume", "ffff" + instance[:4]), ("pause",), ("pause", "zz"),
                                              ("pause", "1", "rate=99999"))]
    words = ["process 1", "label team=other", "instance ffff", "no process given", "\"zz\" is neither", "rate=99999"]
    tap.point(all(r[0] == "NACK" and w in r[2] for r, w in zip(refused, words)), "what is not there is named", refused)


def kills(tap):
    """The daemon is killed again and again while processes count: none is lost, none counts twice."""
    count, seed = int(os.environ.get("ATTACH_KILLS", "12")), int(os.environ.get("ATTACH_SEED", "1"))
    rng = random.Random(seed)
    with Daemon("--harvest-interval", "1s") as d, Bed(harvester=False) as bed:
        exe = bed.build("steady.c", "-pg", "-rdynamic")
        env = dict(bed.env(), PROFD_SOCKET=d.socket)
        real = [subprocess.Popen([exe, "exit"], env=env, cwd=bed.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)]
        real += [subprocess.Popen([exe, "spin"], env=env, cwd=bed.folder, stdout=subprocess.PIPE)]
        hand = [Counter(d.socket, seed + i) for i in range(4)]
        try:
            wait_for(lambda: len(processes(d)) >= 6)
            for _ in range(count):
                time.sleep(rng.random() * 0.25)
                d.stop(signal.SIGKILL)
                if rng.random() < 0.2:
                    time.sleep(rng.random() * 0.1)
                d.start()
            back = wait_for(lambda: len([r for r in processes(d) if r["state"] == "counting"]) >= 5)
            tap.point(bool(back), "after the last of them the processes are attached again", processes(d))
        finally:
            made = sum(c.stop() for c in hand)
            real[0].stdin.close()
            real[0].wait()
            wait_for(lambda: any(r["pid"] == real[1].pid for r in processes(d)))
            real[1].kill()
            real[1].wait()
        answer = sync(d)
        wait_for(lambda: not processes(d))
        stored = total(d, "/bin/counter")
        tap.point(answer == "ACK" and stored == made, f"{count} times kill -9 of the daemon: {made} calls made by "
                                                      f"hand, all stored once (seed {seed})", (answer, stored, made))
        d.ctl("symbols", exe)
        got, exact = calls(d, exe)
        truth = bed.truth(real[0].pid) + bed.truth(real[1].pid)
        wrong = {f: (truth[f], got.get(f)) for f in ("leaf", "middle") if abs(truth[f] - got.get(f, 0)) > 1}
        tap.point(not wrong, f"and {truth['leaf']} of the collector's, but for the one in flight", (wrong, exact))
        tap.point(total(d, "/bin/counter") == made and d.ctl("verify").returncode == 0,
                  "what is stored adds up")


def unseen(tap):
    """Ended while no daemon lived: it is said so."""
    with Daemon() as d:
        c = Counter(d.socket, 1)
        wait_for(lambda: [r for r in processes(d) if r["calls"] > 0])
        d.stop(signal.SIGKILL)
        os.kill(c.pid, signal.SIGKILL)
        os.waitpid(c.pid, 0)
        d.start()
        row = wait_for(lambda: [r for r in d.json("builds", "--json")["rows"]
                                if "end-not-seen" in r["inexact_reasons"]])
        tap.point(row and "end-not-seen" in row[0]["inexact_reasons"],
                  "a process that died while no daemon lived: end-not-seen", row)
        tap.point(b"profd_processes_end_not_seen_total 1\n" in get(d, "/metrics")[2], "and counted")
        d.stop()
        d.start()
        sync(d)
        tap.point(b"profd_processes_end_not_seen_total 0\n" in get(d, "/metrics")[2] and processes(d) == [], "once")


class Kept(Daemon):
    """A daemon with a manager that keeps descriptors."""

    def prepare(self):
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(os.path.join(self.folder, "notify"))
        self.manager.settimeout(0.2)
        self.env["NOTIFY_SOCKET"] = os.path.join(self.folder, "notify")
        self.stored = {}
        return self

    def listen(self):
        """What the daemon said meanwhile; descriptors are kept, or dropped."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.manager, 4096, 4)
            except (socket.timeout, TimeoutError):
                return self.stored
            lines = dict(line.split("=", 1) for line in data.decode().splitlines())
            if lines.get("FDSTORE"):
                self.stored[lines["FDNAME"]] = fds[0]
            elif lines.get("FDSTOREREMOVE"):
                os.close(self.stored.pop(lines["FDNAME"]))

    def start_with(self, names):
        first = list(names)

        def place():
            spare = [os.dup(self.stored[n]) for n in first]
            high = [fcntl_dup(fd, 50) for fd in spare]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
        def fcntl_dup(fd, least):
            import fcntl
            return fcntl.fcntl(fd, fcntl.F_DUPFD, least)
        env = dict(self.env, LISTEN_FDS=str(len(first)), LISTEN_FDNAMES=":".join(first))
        command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *self.command()]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log, stdin=subprocess.DEVNULL, env=env,
                                            preexec_fn=place,
                                            pass_fds=tuple(range(3, 3 + len(first))))
        if not wait_for(lambda: os.path.exists(self.socket) and self.answers()):
            raise RuntimeError(self.logged())

    def answers(self):
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.socket)
            return True
        except OSError:
            return False


def kept(tap):
    """The manager holds the memories: a process that dies while the daemon is away is harvested by the next one."""
    with Kept(start=False).prepare() as d:
        d.start()
        one, other = Counter(d.socket, 5), Counter(d.socket, 6)
        wait_for(lambda: len([r for r in processes(d) if r["calls"] > 0]) == 2)
        names = wait_for(lambda: len(d.listen()) == 2 and sorted(d.stored))
        tap.point(names and all(n.startswith("profd-") and n.split("-")[2] == str(os.getuid()) for n in names),
                  "both memories are kept", (names, d.stored))
        d.stop(signal.SIGKILL)
        made = one.stop_unseen() + other.stop_unseen()
        d.start_with(names)
        gone = wait_for(lambda: processes(d) == [] and total(d, "/bin/counter") == made)
        tap.point(bool(gone), f"two that died while it was away: all {made} calls",
                  (processes(d), total(d, "/bin/counter"), d.logged()))
        row = [r for r in d.json("builds", "--json")["rows"] if r["name"] == "/bin/counter"]
        tap.point(row[0]["exact"] is True, "and exact, because their ends were seen", row)
        tap.point(wait_for(lambda: d.listen() == {}), "the manager is told to drop them", d.stored)
        d.stop()


def page(tap):
    with Daemon() as d:
        m = Memory(labels=[("a", "b")])
        a = Attached(d.socket, m)
        tap.point(a.answer[0] == "ACK" and a.answer[1] >> 8 & 15 == 1 and a.page is not None,
                  "the ACK carries one descriptor", a.answer)
        tap.point(os.fstat(a.page).st_size == 4096 and refused_page(a.page) == [],
                  "of a page that its reader cannot change", refused_page(a.page))
        wait_for(lambda: [r for r in processes(d) if r["labels"] == {"a": "b"}])
        admin(d, "pause", "a=b", "rate=7")
        tap.point(a.paused() == 1 and a.rate() == 7, "a pause stands in it")
        again = Attached(d.socket, m)
        tap.point(again.answer[0] == "ACK" and again.paused() == 1 and again.rate() == 7,
                  "the same memory over a new connection: the pause holds", again.answer)
        said = []
        while answer := a.take():
            said.append(answer)
        tap.point(said[-1][0] == "NACK" and b"another connection" in said[-1][3][4],
                  "the older connection is told so, and over", said)
        tap.point(len(processes(d)) == 1, "it is one process", processes(d))
        admin(d, "resume", "a=b", "rate=0")
        tap.point(again.paused() == 0 and again.rate() == 0 and a.paused() == 1,
                  "what is said later stands in the newer page")
        a.close(), again.close()


def main():
    with Tap() as tap:
        # With PROFD_TEST_REST the others run under the sanitizers.
        for part in (kills,) if os.environ.get("PROFD_TEST_REST") else (page, ends, for_ever, unseen, kept, kills):
            part(tap)


if __name__ == "__main__":
    main()
