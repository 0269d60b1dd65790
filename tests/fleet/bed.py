# not a test
"""A fleet of real programs: the profd of a centre behind nginx, and hosts with profd, profd-relay and a program that
uploads and counts its own calls. Between relay and nginx is something that disturbs connections, and between nginx and
the centre something that disturbs requests."""
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from clocks import moved_as  # noqa: E402
from harness import BUILD, LONG, PROFCTL, PROFD, Daemon, Tap, run, until  # noqa: E402,F401
from https_bed import Nginx, Relay, proxied, why_not  # noqa: E402,F401
from judge import calls_of, difference, sums  # noqa: E402,F401
from memory import Counter  # noqa: E402
from between import Between, Meddler  # noqa: E402,F401
from proxy import Proxy  # noqa: E402
from relaying import Sender, equation  # noqa: E402,F401
from wire import Wire  # noqa: E402

ARCS = [f"{i:02x}" * 20 for i in range(1, 21)]  # builds with one arc each: a report's calls are those of an arc
MARKS = {"restored", "upload-missing"}         # what a report says where a host's counts are missing


class Machine(Daemon):
    """A profd that can be killed, backed up and restored. clock: a file that says how
    far its clock is ahead, in seconds."""

    def __init__(self, *options, clock=None, **more):
        super().__init__(*options, start=False, **more)
        if clock:
            self.env.update(moved_as(clock))
        self.backups = []
        self.start()

    def kill(self):
        self.stop(signal.SIGKILL)
        self.start()

    def back_up(self):
        path = os.path.join(self.folder, f"backup-{len(self.backups)}")
        done = self.ctl("backup", path)
        if done.returncode == 0:
            self.backups.append(path)
        return done

    def restore(self, path, how=signal.SIGKILL):
        self.stop(how)
        done = run(self.program, "--state-dir", self.state, "--restore", path)
        if done.returncode:
            raise RuntimeError(f"{path} is not restored: {done.stderr}")
        self.start()


class Centre(Machine):
    """A centre and its nginx. rate: the part of requests that is disturbed between the two. between: what is there
    instead of that, made from a path to listen on and the path of the centre's socket."""

    def __init__(self, seed=0, rate=0.0, between=None, interval="1s", options=(), **more):
        super().__init__("--relay-interval", interval, *proxied(), *options, **more)
        path = os.path.join(self.folder, "between")
        self.between = between(path, self.http) if between else Meddler(path, self.http, seed, rate)
        self.proxy = Nginx(path).start()
        self.port, self.ca = self.proxy.port, self.proxy.ca

    def restart_proxy(self):
        self.proxy.stop(signal.SIGKILL)
        self.proxy.start()

    def __exit__(self, *_):
        self.proxy.__exit__()
        self.between.stop()
        super().__exit__()


class Host:
    """port: of nginx, or of something in front of it. start: the program begins to upload at once, unless builds is
    empty. live: builds of processes that count while they live."""

    def __init__(self, centre, name, seed, port=None, builds=ARCS, live=(), pause=0.0, rate=0.5, start=True, **more):
        self.name, self.centre, self.proxy = name, centre, Proxy(port or centre.port, seed, rate)
        url = f"https://localhost:{self.proxy.port}"
        self.daemon = Machine("--relay", url, "--harvest-interval", "1s", **more)
        self.relay = Relay(self.daemon, url, centre.token(name, "--write"), centre.ca)
        self.sender = Sender(self.daemon, random.Random(seed), builds, 1, pause)
        self.live = [Counter(self.daemon.socket, f"{seed}/{b}", build_id=b) for b in live]
        self.builds, self.counted = [*builds, *live], {}
        if builds and start:
            self.sender.start()

    def flush(self):
        """One round of the relay. Returns its exit status."""
        return self.relay.once().returncode

    def ledger(self):
        return self.daemon.json("status", "--json")["store"]["relay"]

    def settled(self):
        """True when everything that the host accepted, and has not set apart, is acknowledged."""
        relay = self.ledger()
        return (relay["acknowledged"]["uploads"] + relay["withdrawn"]["uploads"] == relay["accepted"]["uploads"]
                and not relay["outgoing_sealed"] + relay["outgoing_open"])

    def end_live(self):
        """The live processes end, and have been read for the last time."""
        for c in self.live:
            self.counted[c.build_id] = c.stop()
        self.live = []
        with Wire(self.daemon.socket) as w:
            w.send("SYNC", tag=9)
            while (answer := w.take()) and answer[1] != 9:
                pass

    def end(self):
        self.sender.ended = True
        for c in self.live:
            c.stop()
        self.relay.stop()
        self.proxy.stop()
        self.daemon.stop()
        self.daemon.__exit__()


def truth_of(hosts):
    """build → calls, as the programs counted them."""
    out = {}
    for h in hosts:
        for build, n in [*((build, n) for (build, _), n in h.sender.sent.items()), *h.counted.items()]:
            out[build] = out.get(build, 0) + n
    return out


def calls(reports):
    """build → calls, of what calls_of and sums return."""
    return {build: n[0] for build, n in reports.items()}


def stacks(reports):
    """Likewise build → ticks that have a stack."""
    return {build: n[2] for build, n in reports.items() if n[2]}


def stacks_of(hosts):
    """build → ticks of stacks, as the programs sent them: one a call. Live processes have none."""
    out = {}
    for h in hosts:
        for (build, _), n in h.sender.sent.items():
            out[build] = out.get(build, 0) + n
    return out


def excess(a, b):
    """By how many calls a exceeds b, added up over arcs."""
    return sum(max(0, n - b.get(build, 0)) for build, n in a.items())
