"""Processes in containers that crun starts, with other roots, users and namespaces: where they run is found by the
daemon, their calls are their own count, and neither side needs a privilege."""
import datetime
import json
import os
import shutil
import signal
import subprocess
import time
import uuid

from centre import Relay
from harness import BUILD, PROFCTL, PROFD, ROOT, Daemon, Tap, private_mounts, readable_copy, record_lock, run, until

WORKLOAD = 4321   # a user here
SUBUIDS = 100000  # of the users of a container with a user namespace
COLLECTOR = "libprofd-collect.so"
# Publishes a process context as an SDK of OpenTelemetry does (OTEP 4719), and then computes.
SPIN = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const char payload[] = "\x0a\x1d\x0a\x1b\x0a\x0cservice.name\x12\x0b\x0a\x09spinner-0";
struct header { char signature[8]; uint32_t version, size; uint64_t at; const char *payload; };
static volatile long n;
__attribute__((noinline)) void spin(void) { n++; }
int main(void)
{
    int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    struct header *h;
    if (ftruncate(fd, 4096) != 0) { return 1; }
    h = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    madvise(h, 4096, MADV_DONTFORK);
    h->version = 2; h->size = sizeof payload - 1; h->at = 1; h->payload = payload;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    memcpy(h->signature, "OTEL_CTX", 8);
    for (;;) { spin(); }
}
"""

# Closes its connection, tells so, waits, calls a function again, tells how often it did, and waits to be killed.
LEAVER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
static volatile long n;
__attribute__((noinline)) void leaf(void) { n++; }
int main(void)
{
    for (int i = 0; i < 1000; i++) { leaf(); }
    close_range(3, ~0u, 0);
    close(open("/out/left", O_WRONLY | O_CREAT, 0644));
    while (access("/out/go", F_OK) != 0) { usleep(1000); }
    for (int i = 0; i < 1000; i++) { leaf(); }
    int fd = open("/out/truth.1", O_WRONLY | O_CREAT, 0644);
    return write(fd, "2000", 4) != 4 || pause();
}
"""


# Calls a function, tells how often, and waits to be killed.
SHORT = r"""
#include <fcntl.h>
#include <unistd.h>
static volatile long n;
__attribute__((noinline)) void leaf(void) { n++; }
int main(void)
{
    for (int i = 0; i < 1000; i++) { leaf(); }
    int fd = open("/out/truth.1", O_WRONLY | O_CREAT, 0644);
    return write(fd, "1000", 4) != 4 || pause();
}
"""
WITHOUT = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
HIDDEN = ("unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2,gid=65533 proc /proc && exec "$@"', "sh", *WITHOUT)


def crun(folder, *arguments):
    """crun with a state directory of the test's, in which no other containers of this machine are."""
    return ["crun", "--root", os.path.join(folder, "crun"), "--cgroup-manager=cgroupfs", *arguments]


class Container:
    """A container with a root directory of its own: Debian's /usr, and files of the test below /app."""

    def __init__(self, folder, group, name, user, args, env=(), userns=False, mounts=()):
        self.id, self.folder = uuid.uuid4().hex * 2, folder
        self.bundle = os.path.join(folder, name)
        self.root, self.out = os.path.join(self.bundle, "root"), os.path.join(self.bundle, "out")
        self.process = None
        for made in ("proc", "sys", "dev", "usr", "app", "out", "run/profd"):
            os.makedirs(os.path.join(self.root, made))
        for link in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{link}", os.path.join(self.root, link))
        os.makedirs(self.out)
        os.chown(self.out, user + SUBUIDS * userns, user + SUBUIDS * userns)
        namespaces = ["pid", "mount", "ipc", "uts", "network", "cgroup"] + ["user"] * userns
        mapped = [{"containerID": 0, "hostID": SUBUIDS, "size": 65536}]
        binds = [("/usr", "/usr", "ro"), (self.out, "/out", "rw"), *mounts]
        config = {
            "ociVersion": "1.0.2", "hostname": name,
            "process": {"user": {"uid": user, "gid": user}, "args": args, "cwd": "/", "noNewPrivileges": True,
                        "capabilities": {}, "env": ["PATH=/usr/bin", "LC_ALL=C", "TRUTH=/out/truth", *env]},
            "root": {"path": "root", "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                       *({"destination": at, "type": "bind", "source": source, "options": ["rbind", how]}
                         for source, at, how in binds)],
            "linux": {"namespaces": [{"type": t} for t in namespaces], "cgroupsPath": group.format(id=self.id),
                      **({"uidMappings": mapped, "gidMappings": mapped} if userns else {})}}
        with open(os.path.join(self.bundle, "config.json"), "w") as f:
            json.dump(config, f)

    def start(self):
        log = open(os.path.join(self.bundle, "log"), "wb")
        self.process = subprocess.Popen(crun(self.folder, "run", "--bundle", self.bundle, self.id),
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def log(self):
        return open(os.path.join(self.bundle, "log"), errors="replace").read()

    def pid(self):
        done = run(*crun(self.folder, "state", self.id))
        return json.loads(done.stdout)["pid"] if done.returncode == 0 else 0

    def truth(self):
        """The calls that the program counted itself, as texts."""
        return [open(os.path.join(self.out, f)).read().strip() for f in os.listdir(self.out) if f.startswith("truth.")]

    def end(self, how="TERM"):
        run(*crun(self.folder, "kill", self.id, how))
        self.process.wait()
        return self.truth()

    def kill(self):
        if self.process and self.process.poll() is None:
            run(*crun(self.folder, "delete", "--force", self.id))
            self.process.wait()


def compile_into(c, source, name, *options):
    exe = os.path.join(c.root, "app", name)
    done = run("gcc", "-O1", "-Wl,--build-id=uuid", *options, "-o", exe, "-xc", "-", input=source)
    assert done.returncode == 0, done.stderr
    return exe


def counting(folder, group, name, user, socket_folder, env, source=None, **more):
    """A container whose program counts its calls, and tells how many there were."""
    source = source or open(os.path.join(ROOT, "tests/nspawn/count.c")).read()
    c = Container(folder, group, name, user, ["/app/count"],
                  [f"LD_PRELOAD=/app/{COLLECTOR}", "PROFD_SOCKET=/run/profd/profd.sock",
                   "PROFD_CLOCK=off", *env],  # no tick is late, and so none is lost
                  mounts=[(socket_folder, "/run/profd", "ro")], **more)
    c.exe = compile_into(c, source, "count", "-pg")
    shutil.copy(os.path.join(BUILD, COLLECTOR), os.path.join(c.root, "app"))
    return c


def seconds_of(text):
    return datetime.datetime.fromisoformat(text[:26] + "+00:00").timestamp()


def calls_of(report, function):
    return [str(f["calls"]) for f in report["functions"] if f["name"] == function]


def in_a_pod(tap, folder, group):
    """The daemon on the host, without any capability; a container of another user in a pod."""
    links, pod = os.path.join(folder, "links"), str(uuid.uuid4())
    os.mkdir(links)
    group = f"{group}/kubepods-burstable-pod{pod.replace('-', '_')}.slice/cri-containerd-{{id}}.scope"
    with Daemon("--harvest-interval", "1s", "--containers", links, 
                wrapper=WITHOUT) as d:
        false = "f" * 64
        c = counting(folder, group, "pod", WORKLOAD, d.folder,
                     ["PROFD_LABEL_k8s_pod_name=web-0", f"PROFD_LABEL_container_id={false}",
                      "PROFD_LABEL_service=shop"])
        found = {"container_id": c.id, "k8s_pod_uid": pod, "k8s_pod_name": "web-0", "service": "shop", "host": "pod"}

        def labelled():
            return until(lambda: next((p for p in d.json("ps", "--json")["rows"]
                                       if p["calls"] > 1000 and p["labels"] == found), None))
        try:
            c.start()
            tap.point(labelled(), "a process in a pod has the labels of its container and its pod, and its own",
                      (d.json("ps", "--json"), c.log()))
            # The kubelet makes the link when the container has started.
            os.symlink("/var/log/pods/nowhere", os.path.join(links, f"web-0_shop_nginx-{c.id}.log"))
            found.update(k8s_namespace_name="shop", k8s_container_name="nginx")
            row = labelled()
            tap.point(row, "and those of the kubelet's link, when it is there", d.json("ps", "--json"))
            tap.point(row and row["pid"] == c.pid() and row["pid_inside"] == 1, "its numbers are known", (row, c.pid()))
            truth = c.end()
            report = until(lambda: (r := d.json("report", c.exe, "--json", "-l", "k8s_pod_name=web-0"))
                           and calls_of(r, "leaf") == truth and r)
            tap.point(report, "the calls under the pod's name are those that the process counted itself, by name",
                      (truth, d.ctl("report", c.exe, "--flat").stdout))
            tap.point(report and report["provenance"]["inexact_reasons"] == ["label-left-out"],
                      "another container's id, which it claims, is left out, and the report says so",
                      report and report["provenance"])
            tap.point(d.ctl("report", c.exe, "-l", f"container_id={false}").returncode != 0, "and selects nothing")
        finally:
            c.kill()
        record(tap, d, folder, group, links)


def record(tap, d, folder, group, links):
    """`profctl record`, as root on the host: symbols come from the container's own root directory."""
    c = Container(folder, group, "recorded", WORKLOAD, ["/app/spin"])
    exe = compile_into(c, SPIN, "spin")
    os.symlink("/var/log/pods/nowhere", os.path.join(links, f"web-1_shop_spinner-{c.id}.log"))
    try:
        with record_lock():  # before the container computes
            c.start()
            assert until(lambda: c.pid() or c.process.poll() is not None) and c.process.poll() is None, c.log()
            sampling = subprocess.Popen([PROFCTL, "record", "--rate", "499", "--cgroup", group.format(id=c.id)[1:]],
                                        env=d.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            ticks = os.path.join("/proc", str(c.pid()), "stat")
            spent = lambda: int(open(ticks).read().rpartition(")")[2].split()[11])
            until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8") or sampling.poll() is not None)  # it samples
            begun = spent()
            until(lambda: spent() > begun + 200)  # two seconds of its CPU time
            sampling.send_signal(signal.SIGINT)
            said = sampling.communicate()[1]
        report = d.ctl("report", exe, "--json", "-l", "k8s_pod_name=web-1", "-l", "k8s_container_name=spinner", "-l",
                       f"container_id={c.id}", "-l", "service_name=spinner-0")
        names = [f["name"] for f in json.loads(report.stdout)["functions"]] if report.returncode == 0 else []
        tap.point(sampling.returncode == 0 and "spin" in names,
                  "record: the same labels, those of a process context, and names from the container's root",
                  (said, report, d.ctl("labels").stdout))
    finally:
        c.kill()


def relayed(tap, folder, group):
    """A centre gets the labels of place as a host's daemon found them, with the calls."""
    pod = str(uuid.uuid4())
    group = f"{group}/kubepods-pod{pod.replace('-', '_')}.slice/cri-containerd-{{id}}.scope"
    links = os.path.join(folder, "links")
    with Daemon("--harvest-interval", "1s", "--containers", links, "--relay", "https://c", wrapper=WITHOUT) as d, \
            Daemon() as centre:
        c = counting(folder, group, "relayed", WORKLOAD, d.folder, [f"PROFD_LABEL_k8s_pod_uid={uuid.uuid4()}"])
        os.symlink("/var/log/pods/nowhere", os.path.join(links, f"web-3_shop_nginx-{c.id}.log"))
        found = {"container_id": c.id, "k8s_pod_uid": pod, "k8s_pod_name": "web-3", "k8s_namespace_name": "shop",
                 "k8s_container_name": "nginx"}
        asked = [word for label in found.items() for word in ("-l", "=".join(label))]
        relay = Relay(d, centre, "node.example")
        try:
            c.start()
            until(lambda: any(p["calls"] > 1000 for p in d.json("ps", "--json")["rows"]))
            truth = c.end()
            until(lambda: not d.json("ps", "--json")["rows"])
            relay.settle()
            assert centre.ctl("symbols", c.exe).returncode == 0
            done = centre.ctl("report", c.exe, "--json", *asked, "-l", "host=node.example")
            report = json.loads(done.stdout) if done.returncode == 0 else {"functions": [], "provenance": {}}
            tap.point(truth and calls_of(report, "leaf") == truth
                      and report["provenance"].get("inexact_reasons") == ["label-left-out"],
                      "relayed: a centre has the calls under the labels that the host found, and not under those that "
                      "the process stated", (truth, done, centre.ctl("labels").stdout, c.log()))
        finally:
            c.kill()


def unexamined(tap, folder, group):
    """Processes of which the daemon can read nothing: one has ended before its request is read, another is hidden. Both
    are counted; neither has a place, nor may it state one."""
    for name, wrapper in (("ended", WITHOUT), ("hidden", HIDDEN)):
        with Daemon("--harvest-interval", "1s", wrapper=wrapper) as d:
            c = counting(folder, group + "/cri-containerd-{id}.scope", name, WORKLOAD, d.folder,
                         ["PROFD_LABEL_k8s_pod_name=web-4", "PROFD_LABEL_service=shop"], SHORT)
            try:
                if name == "ended":
                    d.process.send_signal(signal.SIGSTOP)
                c.start()
                until(lambda: c.truth() == ["1000"])
                if name == "hidden":
                    until(lambda: any(p["harvested"] for p in d.json("ps", "--json")["rows"]))
                truth = c.end("KILL")
                d.process.send_signal(signal.SIGCONT)
                until(lambda: d.ctl("report", c.exe).returncode == 0 and not d.json("ps", "--json")["rows"])
                assert d.ctl("symbols", c.exe).returncode == 0  # it was not there to be asked for them
                report = until(lambda: calls_of(r := d.json("report", c.exe, "--json"), "leaf") == truth and r)
                labels = {row["name"] for row in d.json("labels", "--json")["rows"]}
                tap.point(report and truth == ["1000"] and report["provenance"]["inexact_reasons"] == ["label-left-out"]
                          and labels == {"service", "host"},
                          f"{name}: its calls are counted, without a place", (report, labels, d.logged(), c.log()))
            finally:
                d.process.send_signal(signal.SIGCONT)
                c.kill()


def as_a_sidecar(tap, folder, group):
    """The daemon in a container beside the workload's: neither sees the other's processes, and neither has any
    capability, or is a user of the host."""
    shared, programs = (os.path.join(folder, n) for n in ("shared", "programs"))
    for path in (shared, programs):
        os.mkdir(path)
        os.chown(path, SUBUIDS, SUBUIDS)
    readable_copy(PROFD, programs)
    ctl = readable_copy(PROFCTL, programs)
    daemon = Container(folder, group, "sidecar", 0,
                       ["/app/profd", "--state-dir", "/out/data", "--socket", "/run/profd/profd.sock", "--http-socket",
                        "none", "--harvest-interval", "1s"], userns=True,
                       mounts=[(programs, "/app", "ro"), (shared, "/run/profd", "rw")])
    c = counting(folder, group, "beside", 0, shared, ["PROFD_LABEL_k8s_pod_name=web-2"], userns=True)
    leaver = counting(folder, group, "leaver", 0, shared, [], LEAVER, userns=True)
    socket = os.path.join(shared, "profd.sock")
    user = ("setpriv", f"--reuid={SUBUIDS}", f"--regid={SUBUIDS}", "--clear-groups", ctl)

    def ask(*arguments):
        done = run(*user, *arguments, "--socket", socket, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        return json.loads(done.stdout) if done.returncode == 0 else {"rows": [], "functions": [], "said": done.stderr}
    try:
        daemon.start()
        until(lambda: os.path.exists(socket) or daemon.process.poll() is not None)
        c.start()
        row = until(lambda: next((p for p in ask("ps", "--json")["rows"] if p["calls"] > 1000), None))
        status = dict(line.split(":\t") for line in open(f"/proc/{daemon.pid()}/status").read().splitlines()
                      if line.startswith(("Cap", "Uid")))
        tap.point(status["Uid"].split() == [str(SUBUIDS)] * 4 and not any(int(v, 16) for k, v in status.items()
                                                                           if k.startswith("Cap")),
                  "a daemon without any capability, of a user of its own namespace", status)
        tap.point(row and not row["pid"] and row["pid_inside"] == 1
                  and row["labels"] == {"k8s_pod_name": "web-2", "host": "beside"},
                  "a process whose number it cannot know has the labels that the workload states",
                  (row, ask("ps", "--json"), daemon.log(), c.log()))
        leaver.start()
        until(lambda: os.path.exists(os.path.join(leaver.out, "left")))
        left = time.time()

        def read_since():  # or given up
            rows = [p for p in ask("ps", "--json")["rows"] if p["instance"] != row["instance"]]
            return not rows or rows[0]["harvested"] and seconds_of(rows[0]["harvested"]) > left
        until(read_since)
        open(os.path.join(leaver.out, "go"), "w").close()
        until(lambda: leaver.truth() == ["2000"])  # the file is there before its text
        truth = leaver.end("KILL")
        report = until(lambda: calls_of(r := ask("report", leaver.exe, "--json"), "leaf") == truth
                       and len(ask("ps", "--json")["rows"]) == 1 and r)
        tap.point(report and truth == ["2000"] and report["provenance"]["exact"],
                  "another one has closed its connection, and is read until it is killed",
                  (truth, ask("report", leaver.exe, "--json"), leaver.log()))
        truth = c.end()
        report = until(lambda: (r := ask("report", c.exe, "--json")) and calls_of(r, "leaf") == truth
                       and r["provenance"]["exact"] and not ask("ps", "--json")["rows"] and r)
        tap.point(report, "its calls are those that it counted itself, exact, and its end is noticed",
                  (truth, ask("report", c.exe, "--json").get("provenance"), ask("ps", "--json"), daemon.log()))
    finally:
        for container in (c, leaver, daemon):
            container.kill()


def main(tap):
    if not private_mounts() or run("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup").returncode != 0:
        return tap.skip("containers", "only root may mount control groups of version 2")
    group = f"/profd-test-{os.getpid()}"
    with Daemon(start=False) as place:  # its folder only
        for mounted in ("/var/log",):  # for record, which has no option for the kubelet's links
            assert run("mount", "-t", "tmpfs", "none", mounted).returncode == 0
        os.symlink(os.path.join(place.folder, "links"), "/var/log/containers")
        try:
            in_a_pod(tap, place.folder, group)
            relayed(tap, place.folder, group)
            unexamined(tap, place.folder, group)
            as_a_sidecar(tap, place.folder, group + "/{id}")
        finally:
            for path, _, _ in os.walk("/sys/fs/cgroup" + group, topdown=False):
                os.rmdir(path)


with Tap() as TAP:
    main(TAP)
