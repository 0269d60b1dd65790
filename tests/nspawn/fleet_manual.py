"""profd-fleet(7), walked to the letter: the commands of the page run in three booted containers with a fresh Debian 12,
a centre behind nginx and two hosts, with the packages of make deb. Then these are upgraded under load, a token is
removed, and the packages are removed and purged.

fleet_manual.py ROOT DEBS [OLD]    ROOT as tests/nspawn/root.sh makes it; DEBS has the packages. OLD has those that are
                                   installed first; without it, the packages of DEBS with a lower version.

Prints TAP with every command, and the figures of the upgrade. Needs root and a Debian mirror. The containers share the
network of this machine, so the ports 80, 443 and 9090 must be free. What differs from the page: relay-interval is 2s,
the names are in /etc/hosts, and words in capitals are replaced. Not part of make check: `make packages` runs it."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from container import LONG, ROOT, Container, run, wait_for
from bed import Bed
from harness import Tap, programs

PAGE = os.path.join(ROOT, "daemon/profd-fleet.7")
SECTIONS = ("THE CENTRE", "A HOST", "THE FIRST REPORT", "BACKUP, RESTORE, UPGRADE, REMOVAL")
PROMETHEUS = "/usr/share/doc/profd/examples/prometheus-alerts.yaml"
UPGRADE = "cd /root/profd && apt-get install -y $(ls ./*.deb | grep -E '{}')"
APT = 1200


def sections(page):
    """heading → [(side, command)], of the literal blocks."""
    out, heading, literal = {}, "", False
    for line in open(page).read().split("\n"):
        if line.startswith(".Sh "):
            heading = line[4:]
        elif line.startswith((".Bd -literal", ".Ed")):
            literal = line.startswith(".Bd")
        elif literal:
            text = line.replace("\\e", "\\")
            prompt = re.match(r"(centre|host|)# (.*)", text, re.S)
            if prompt:
                out.setdefault(heading, []).append(list(prompt.groups()))
            else:
                out[heading][-1][1] += "\n" + text
    return out


def lower(debs, folder):
    """The same packages with a lower version."""
    os.makedirs(folder)
    for deb in debs:
        tree = os.path.join(folder, "tree")
        for command in (("dpkg-deb", "-R", deb, tree),
                        ("sed", "-i", "-E", r"s/^Version: .*/&~1/; s/\(= ([^)]*)\)/(= \1~1)/g",
                         f"{tree}/DEBIAN/control"),
                        ("dpkg-deb", "-b", "-Zgzip", "-z1", "--root-owner-group", tree, folder)):
            done = run(*command, timeout=APT)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        shutil.rmtree(tree)
    return glob.glob(os.path.join(folder, "*.deb"))


class Place(Container):
    """A centre or a host."""

    def __init__(self, root, folder, name, debs, test):
        where = os.path.join(folder, name)
        os.makedirs(where)
        super().__init__(root, where)
        self.name = name
        self.copy(debs)
        self.token = ""
        shutil.copytree(test, os.path.join(self.root, "opt/test"))
        for path, text in (("etc/hostname", name + "\n"),
                           ("etc/hosts", f"127.0.0.1 localhost {name} centre.example\n"),
                           ("etc/profd.conf", "relay-interval = 2s\n"),
                           ("etc/dpkg/dpkg.cfg.d/fast", "force-unsafe-io\n"),
                           ("etc/apt/apt.conf.d/99quiet", 'Dpkg::Use-Pty "0";\nAPT::Install-Recommends "0";\n'),
                           ("etc/apt/sources.list", "deb http://deb.debian.org/debian bookworm main\n")):
            with open(os.path.join(self.root, path), "w") as f:
                f.write(text)

    def copy(self, debs):
        to = os.path.join(self.root, "root/profd")
        shutil.rmtree(to, ignore_errors=True)
        os.makedirs(to)
        for deb in debs:
            shutil.copy(deb, to)

    def shell(self, text):
        """A command as typed: the working directory and functions stay for the next one."""
        keep = 'cd "$(cat /run/walk.cwd 2>/dev/null || echo /root)"; [ ! -e /run/walk.fn ] || . /run/walk.fn\n'
        done = self.do("bash", "-c", f"{keep}{text}\ns=$?; pwd > /run/walk.cwd; declare -f > /run/walk.fn; exit $s",
                       timeout=APT, DEBIAN_FRONTEND="noninteractive")
        return done

    def json(self, *verb):
        done = self.do("profctl", *verb, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def settled(self):
        relay = self.json("status").get("store", {}).get("relay")
        return relay and relay["acknowledged"]["uploads"] == relay["accepted"]["uploads"] > 0

    def calls(self, name):
        return self.json("report", f"/opt/test/{name}").get("totals", {}).get("calls", 0)


class Walk:
    def __init__(self, tap, centre, hosts):
        self.tap, self.centre, self.hosts = tap, centre, hosts
        self.page, self.said, self.count = sections(PAGE), "", 0

    def section(self, name, **hooks):
        """Runs its commands. hooks: beginning of a command → what is called before it."""
        for side, command in self.page[name]:
            for begin, hook in hooks.get("before", {}).items():
                if command.startswith(begin):
                    hook()
            if side:
                self.command(name, side, command)

    def command(self, name, side, command):
        for c in [self.centre] if side == "centre" else self.hosts:
            text = re.sub(r"\bTOKEN\b", c.token, command)
            for word, value in (("COMMAND", "/opt/test/cycle 40"), ("PROGRAM", "/opt/test/cycle"), ("NAME", "ci"),
                                ("HOSTS", " ".join(h.name for h in self.hosts))):
                text = re.sub(rf"\b{word}\b", value, text)
            done = c.shell(text)
            self.count += 1
            self.tap.point(done.returncode == 0, f"{name}: {c.name}# {command.splitlines()[0]}",
                           (done.stdout + done.stderr)[-3000:])
            self.said = done.stdout
            for line in done.stdout.splitlines():  # "NAME TOKEN" of each host, or a TOKEN that the next command uses
                for h in self.hosts:
                    h.token = line.split()[1] if line.startswith(f"{h.name} profd_") else h.token
                if line.startswith("profd_"):
                    self.centre.token = line


def equal(w):
    """The centre has what the hosts have."""
    return sum(h.calls("cycle") for h in w.hosts) == w.centre.calls("cycle") > 0


def set_up(tap, w):
    typed = [command for name in SECTIONS[:2] for side, command in w.page[name] if side]
    trial = [command for command in typed if command.startswith("openssl ")]
    tap.point(len(trial) == 1 and len(typed) == 9, f"the page sets up centre and hosts with {len(typed) - len(trial)} "
              f"commands, and {len(trial)} for a certificate of a trial", typed)
    w.section("THE CENTRE")
    for h in w.hosts:  # as the page says of a certificate that is made for a trial
        os.makedirs(os.path.join(h.root, "etc/profd"), exist_ok=True)
        shutil.copy(os.path.join(w.centre.root, "etc/ssl/centre.example.crt"),
                    os.path.join(h.root, "etc/profd/centre.crt"))
        h.shell("echo 'relay-ca = /etc/profd/centre.crt' >> /etc/profd.conf")

    def installed():
        for h in w.hosts:
            units = h.do("systemctl", "list-unit-files", "--state=enabled", "--no-legend", "profd*").stdout
            users = [h.do("getent", "passwd", f"profd{u}").returncode for u in ("", "-relay")]
            tap.point(not units and users == [0, 0] and h.show("ActiveState") == "inactive",
                      f"{h.name}: the packages make the users, enable nothing and start nothing", (units, users))
    w.section("A HOST", before={"echo TOKEN": installed})

    def sent():
        print(f"# {w.count} commands on {1 + len(w.hosts)} machines before the first report", flush=True)
        wait_for(lambda: all(h.settled() for h in w.hosts))
    w.section("THE FIRST REPORT", before={"profctl hosts": sent})
    tap.point(wait_for(lambda: equal(w)), "the centre's report has the calls of both hosts",
              [c.calls("cycle") for c in (w.centre, *w.hosts)])
    rows = w.centre.json("hosts").get("rows", [])
    tap.point(sorted(r["name"] for r in rows) == sorted(h.name for h in w.hosts) and {r["tenant"] for r in rows}
              == {"default"}, "profctl hosts has both, of the tenant", rows)
    tap.point("/opt/test/cycle" in w.said, "a program with a token reads the builds through nginx", w.said[:500])
    done = w.centre.shell(f"curl -sS --http2 -w ' %{{http_code}} %{{http_version}}' -u anybody:{w.centre.token} "
                          "--cacert /etc/ssl/centre.example.crt https://centre.example/api/v1/builds")
    tap.point("/opt/test/cycle" in done.stdout and done.stdout.endswith(" 200 2"), "and with it as a password", done)


def prometheus(tap, w):
    """The commands that the head of prometheus-alerts.yaml has."""
    text = open(os.path.join(w.centre.root, PROMETHEUS.lstrip("/"))).read()
    done = w.centre.shell("set -e\n" + "\n".join(re.findall(r"^#     (.*)", text, re.M)))
    tap.point(done.returncode == 0, "the commands for Prometheus", (done.stdout + done.stderr)[-3000:])

    def lags():
        done = w.centre.shell("curl -sSf 'http://127.0.0.1:9090/api/v1/query?query=profd_host_lag_seconds'")
        return [r["metric"]["host"] for r in json.loads(done.stdout or "{}").get("data", {}).get("result", [])]
    tap.point(wait_for(lambda: sorted(lags()) == sorted(h.name for h in w.hosts)), "Prometheus has the lag of both "
              "hosts", lags())


def restore(tap, w):
    for h in w.hosts:
        h.shell("profctl run /opt/test/cycle 20")

    def more():
        for h in w.hosts:
            h.shell("profctl run /opt/test/cycle 20")
        wait_for(lambda: equal(w))
    tap.point(wait_for(lambda: equal(w)), "before the backup the centre has what the hosts have")
    w.section("BACKUP, RESTORE, UPGRADE, REMOVAL", before={"systemctl stop": more})
    tap.point(wait_for(lambda: equal(w)) and w.centre.do("profctl", "verify").returncode == 0,
              "after the restore the centre gets again what the backup lacks",
              [c.calls("cycle") for c in (w.centre, *w.hosts)])


def truths(h):
    return glob.glob(os.path.join(h.root, "var/tmp/truth.*"))


class Load:
    """On each host a process that goes on, and one process after the other that ends after a moment; each counts its
    calls itself, too."""

    def __init__(self, hosts):
        self.hosts = hosts
        for h in hosts:
            for name, command in (
                    ("long", "exec profctl run /opt/test/count"),
                    ("short", "while [ ! -e /run/walk.stop ]; do profctl run timeout 0.4 /opt/test/count 2>> "
                     "/var/tmp/said; sleep 0.1; done")):
                done = h.do("systemd-run", "--quiet", f"--unit=load-{name}", "-E", "TRUTH=/var/tmp/truth", "-p",
                            "WorkingDirectory=/var/tmp", "bash", "-c", command)
                if done.returncode != 0:
                    raise RuntimeError(done.stderr)

    def end(self):
        """(processes, calls that they counted themselves)"""
        for h in self.hosts:
            h.shell("touch /run/walk.stop; systemctl kill --kill-whom=all load-long; true")
            wait_for(lambda h=h: h.do("pgrep", "-x", "count").returncode != 0
                     and h.do("systemctl", "is-active", "load-short").returncode != 0)
        own = [int(open(path).read()) for h in self.hosts for path in truths(h)]
        self.processes, self.truth = len(own), sum(own)


def versions(places):
    return {c.do("dpkg-query", "-W", "-f=${Version}", "profd").stdout for c in places}


def upgrade(tap, w, debs):
    places = (w.centre, *w.hosts)
    old, pids = versions(places), [c.show("MainPID") for c in places]
    load = Load(w.hosts)
    tap.point(wait_for(lambda: w.centre.calls("count") > 0), "load: processes on both hosts are counted at the centre")
    at = len(truths(w.hosts[0]))
    for c in places:
        c.copy(debs)
    began = time.monotonic()
    for c, wanted in ((w.centre, "/(profd|profctl)_"), *((h, "/(profd|profd-relay|profctl|libprofd0|profd-collect)_")
                                                         for h in w.hosts)):
        done = c.shell(UPGRADE.format(wanted))
        tap.point(done.returncode == 0, f"upgrade: {c.name}", (done.stdout + done.stderr)[-3000:])
    took = time.monotonic() - began
    wait_for(lambda: len(truths(w.hosts[0])) > at + 20)
    load.end()
    new = versions(places)
    tap.point(len(new) == 1 and not new & old and all(c.show("MainPID") != pid and c.show("ActiveState") == "active"
                                                      for c, pid in zip(places, pids)),
              f"upgraded from {old} to {new}: the daemons were restarted and run", (old, new))
    wait_for(lambda: sum(h.calls("count") for h in w.hosts) == load.truth == w.centre.calls("count"))
    at_hosts, at_centre = sum(h.calls("count") for h in w.hosts), w.centre.calls("count")
    exact = [c.json("report", "/opt/test/count").get("provenance", {}).get("exact") for c in places]
    print(f"# upgrade of centre and {len(w.hosts)} hosts under load, {took:.0f} s: {load.processes} processes, "
          f"{load.truth} calls counted by themselves; on the hosts {at_hosts}, at the centre {at_centre}: "
          f"{max(load.truth - at_centre, 0)} lost, {max(at_centre - load.truth, 0)} doubled", flush=True)
    tap.point(at_hosts == at_centre == load.truth > 0 and exact == [True] * 3,
              "upgrade under load: 0 calls lost, 0 doubled, and the reports are exact",
              (at_hosts, at_centre, load.truth, exact))
    tap.point(w.centre.do("profctl", "verify").returncode == 0, "verification finds nothing")


def end(tap, w):
    lost, h = w.hosts[-1], w.hosts[0]
    removed = w.centre.shell(f"profctl token remove {lost.name}")
    lost.shell("profctl run /opt/test/cycle 20; systemctl restart profd-relay")
    tap.point(removed.returncode == 0 and wait_for(lambda: "401" in lost.do("profctl", "status").stdout or
              "token" in lost.do("profctl", "status").stdout), "a host whose token is removed is refused, and says so",
              lost.do("profctl", "status").stdout)
    token = w.centre.shell(f"profctl token add {lost.name} --write").stdout.strip()
    lost.shell(f"echo {token} > /etc/profd/relay.token && systemctl restart profd-relay")
    tap.point(wait_for(lambda: equal(w)), "with a new one it sends all, and none twice",
              [c.calls("cycle") for c in (w.centre, *w.hosts)])
    done = h.shell("apt-get remove -y profd profd-relay")
    left = h.shell("ls -d /var/lib/profd/profd.db /etc/profd.conf /etc/profd/relay.token; systemctl list-units "
                   "--no-legend 'profd*'").stdout.split()
    tap.point(done.returncode == 0 and left == ["/etc/profd.conf", "/etc/profd/relay.token", "/var/lib/profd/profd.db"],
              "after the removal no unit runs, and the data is there", (done, left))
    done = h.shell("apt-get purge -y profd profd-relay")
    left = h.shell("ls -d /var/lib/profd* /var/spool/profd /etc/profd.conf /etc/profd/relay.token /run/profd "
                   "/lib/systemd/system/profd* 2>/dev/null; getent passwd profd profd-relay | wc -l").stdout.split()
    tap.point(done.returncode == 0 and left == ["2"], "after the purge only the users are there", (done, left))
    done = h.shell("cd /root/profd && apt-get install -y ./profd_*.deb && systemctl enable --now profd.service && "
                   "profctl status")
    tap.point(done.returncode == 0, "it can be installed again", (done.stdout + done.stderr)[-1000:])


def prepare(folder):
    """Programs that the containers run."""
    test = os.path.join(folder, "test")
    os.makedirs(test)
    with Bed(harvester=False) as bed:
        shutil.copy(bed.build(os.path.join(ROOT, "tests/nspawn/count.c"), "-pg"), test)
        shutil.copy(os.path.join(programs(os.path.join(bed.folder, "programs")), "cycle"), test)
    run("chmod", "-R", "a+rX", test)
    return test


def main():
    root, new = os.path.abspath(sys.argv[1]), glob.glob(os.path.join(sys.argv[2], "*.deb"))
    folder = tempfile.mkdtemp(prefix="profd-walk-", dir="/var/tmp")
    places = []
    with Tap() as tap:
        try:
            old = glob.glob(os.path.join(sys.argv[3], "*.deb")) if len(sys.argv) > 3 else \
                lower(new, os.path.join(folder, "old"))
            test = prepare(folder)
            for name in ("centre", "web-1", "web-2"):
                places.append(Place(root, folder, name, old, test))
                tap.point(places[-1].boot("--resolv-conf=copy-host"), f"{name} boots",
                          open(os.path.join(places[-1].folder, "console"), errors="replace").read()[-1500:])
            w = Walk(tap, places[0], places[1:])
            tap.point(all(w.page.get(s) for s in SECTIONS), "the page has the sections", list(w.page))
            set_up(tap, w)
            prometheus(tap, w)
            restore(tap, w)
            upgrade(tap, w, new)
            end(tap, w)
        finally:
            for c in places:
                said = c.do("journalctl", "-b", "--no-pager", "-u", "profd*", "-n", "60").stdout if c.process else ""
                print("".join(f"# {c.name}: {line}\n" for line in said.splitlines()))
                c.stop()
            subprocess.run(["rm", "-rf", "--one-file-system", folder])


main()
