"""make demo-fleet: a centre behind nginx and six hosts on temporary folders, each with a state directory, a token and a
relay of its own. Two versions of a program run everywhere; one host is cut off and comes back, the centre is killed and
started.
In the end the centre's report over all hosts is compared with what the programs counted themselves.
Usage: fleet.py [RUNS of the program on each host in each phase, 4]"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import Daemon, run, until  # noqa: E402
from https_bed import Nginx, Relay, proxied  # noqa: E402

HOSTS = 6
CUT_OFF = 5  # host-5
FUNCTIONS = ("order", "price", "discount", "coupon")
VERSIONS = {"1.2": "12", "1.3": "13"}


def say(text):
    print(f"\n== {text}", flush=True)


class Network:
    """The way of one host to the centre, which can be cut."""

    def __init__(self, port):
        self.target, self.open, self.pairs = port, True, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            if not self.open:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.open = False
        for pair in self.pairs:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Host:
    def __init__(self, number, centre, nginx):
        self.name, self.network = f"host-{number}", Network(nginx.port)
        url = f"https://localhost:{self.network.port}"
        self.daemon = Daemon("--relay", url, "--harvest-interval", "1s")
        self.relay = Relay(self.daemon, url, centre.token(self.name, "--write"), nginx.ca).start()

    def run(self, program, version, orders, truth):
        done = self.daemon.ctl("run", "-l", "service=shop", "-l", f"version={version}", program, orders,
                               env=dict(self.daemon.env, TRUTH=truth))
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def ledger(self):
        return self.daemon.json("status", "--json")["store"]["relay"]

    def settled(self):
        """Everything that was accepted is acknowledged."""
        r = self.ledger()
        return r["acknowledged"]["calls"] == r["accepted"]["calls"] and not r["outgoing_open"] + r["outgoing_sealed"]

    def end(self):
        self.relay.stop()
        self.daemon.__exit__()


class Fleet:
    def __init__(self, runs, centre, nginx, folder):
        self.runs, self.centre, self.processes = runs, centre, 0
        self.truth, self.programs = {}, {}
        for version, number in VERSIONS.items():
            self.truth[version] = os.path.join(folder, f"truth-{version}")
            os.mkdir(self.truth[version])
            self.programs[version] = os.path.join(folder, f"shop-{version}")
            subprocess.run(["gcc", "-O1", "-pg", "-fno-inline", "-fno-optimize-sibling-calls", f"-DVERSION={number}",
                            "-o", self.programs[version], os.path.join(HERE, "shop.c")], check=True)
        self.hosts = [Host(n, centre, nginx) for n in range(1, HOSTS + 1)]

    def work(self, phase):
        """Runs the program on all hosts: version 1.2 on the first ones, 1.3 on the others; more hosts update later."""
        def on(index, host):
            version = "1.2" if index + phase < HOSTS // 2 + 1 else "1.3"
            for n in range(self.runs):
                host.run(self.programs[version], version, 10000 * (phase + 1) + 1000 * index + n, self.truth[version])
        threads = [threading.Thread(target=on, args=pair) for pair in enumerate(self.hosts)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.processes += self.runs * HOSTS
        print(f"{self.runs} processes on each of {HOSTS} hosts have ended")

    def settle(self, hosts):
        def all_settled():
            late = [h for h in hosts if not h.settled()]
            for h in late:
                h.relay.hurry()
            time.sleep(0.5 if late else 0)
            return not late
        ended = until(all_settled)
        for h in hosts:
            r = h.ledger()
            print(f"{h.name}: calls accepted {r['accepted']['calls']:,} = acknowledged {r['acknowledged']['calls']:,} "
                  f"+ sealed {r['sealed']['calls']:,} + open {r['open']['calls']:,}")
        return ended

    def counted(self, version):
        """function → calls, by the programs themselves."""
        out = dict.fromkeys(FUNCTIONS, 0)
        for name in os.listdir(self.truth[version]):
            for line in open(os.path.join(self.truth[version], name)):
                function, n = line.split()
                out[function] += int(n)
        return out

    def reported(self, version):
        """function → calls, by the centre."""
        report = self.centre.json("report", self.programs[version], "--json")
        found = {f["name"]: f["calls"] + f["self_calls"] for f in report["functions"]}
        return {f: found.get(f, 0) for f in FUNCTIONS}, report["provenance"]

    def named(self, version):
        """Do hosts name its functions, and agree? The centre never sees an executable."""
        report = self.centre.json("report", self.programs[version], "--json")
        build = next(b for b in report["builds"] if b["build_id"] == report["build_id"])
        return build["has_names"] and "disputed" not in build

    def compare(self):
        equal, calls = True, 0
        for version in VERSIONS:
            truth, (found, provenance) = self.counted(version), self.reported(version)
            exact = provenance["calls_exact"]
            print(f"\nshop {version}: {provenance['hosts']} hosts, calls exact: {'yes' if exact else 'no'}")
            print(f"  {'function':10} {'by the programs':>18} {'by the centre':>18}")
            for f in FUNCTIONS:
                same = truth[f] == found[f]
                equal, calls = equal and same, calls + truth[f]
                print(f"  {f:10} {truth[f]:18,} {found[f]:18,}  {'equal' if same else 'DIFFERENT'}")
            equal = equal and exact
        return equal, calls


def story(f, centre):
    say("All hosts run the program and send what they count to the centre")
    f.work(0)
    f.settle(f.hosts)
    lost = f.hosts[CUT_OFF - 1]
    say(f"{lost.name} is cut off; all hosts go on")
    lost.network.cut()
    f.work(1)
    f.settle([h for h in f.hosts if h is not lost])
    until(lambda: lost.ledger()["error"])
    print("\n".join(line for line in lost.daemon.ctl("status").stdout.splitlines()
                    if line.startswith(("relay", "unsent", "CENTRE"))))
    say("The centre is killed (kill -9) while all hosts go on, and started again")
    centre.stop(signal.SIGKILL)
    f.work(2)
    centre.start()
    say(f"{lost.name} is connected again")
    lost.network.open = True
    f.work(3)
    if not f.settle(f.hosts):
        print("not everything was acknowledged")
        return 1
    named = until(lambda: all(f.named(version) for version in VERSIONS))
    print("Names of functions: " + ("what the first host sent; the centre has no executable" if named
                                    else "none, or hosts have different ones"))
    say("profctl groups --by host, at the centre")
    for version in VERSIONS:
        print(centre.ctl("groups", f.programs[version], "--by", "host").stdout)
    say("One report over all hosts: profctl report, at the centre")
    print(centre.ctl("report", f.programs["1.3"]).stdout)
    say("What the programs counted themselves, and what the centre reports")
    equal, calls = f.compare()
    verified = [d.ctl("verify").returncode == 0 for d in (centre, *(h.daemon for h in f.hosts))]
    print(f"\nprofctl verify finds {'nothing' if all(verified) else 'DIFFERENCES'} at the centre and on {HOSTS} hosts")
    if not (equal and calls and all(verified)):
        print("\nThe centre's report DIFFERS from what the programs counted.")
        return 1
    print(f"\nEqual: {f.processes} processes on {HOSTS} hosts counted {calls:,} calls, and the centre reports the same "
          "number of each function: none is missing, none is counted twice.")
    return 0


def main():
    folder = tempfile.mkdtemp(prefix="profd-fleet-")
    f = None
    say("Starting a centre (profd behind nginx), and six hosts (profd and profd-relay each, with a token)")
    try:
        with Daemon("--relay-interval", "1s", *proxied()) as centre, Nginx(centre) as nginx:
            try:
                f = Fleet(int(sys.argv[1]) if len(sys.argv) > 1 else 4, centre, nginx, folder)
                return story(f, centre)
            finally:
                for h in f.hosts if f else ():
                    h.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
