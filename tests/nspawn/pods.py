"""The images and the pods of systemd/kubernetes, run: `make image-check`, as root, with crun and umoci of Debian.

pods.py FOLDER    FOLDER has the images of make image

A small kubelet reads the manifests and runs each container as they say: image, command, user, capabilities, read-only
root, the default seccomp profile of container engines, volumes, process numbers, probes. There are a pod of the centre,
one of the agent, and the three examples, with programs that count their own calls. What is not Kubernetes here: the
pods share one network with the names of /etc/hosts instead of Services (so relays connect to the port of nginx), and
nobody schedules, restarts or admits pods. Not part of make check."""
import copy
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, d) for d in ("../integration", "../../systemd")]
import image  # noqa: E402
from harness import BUILD, ROOT, Tap, record_lock, run, until  # noqa: E402
from manifests import containers, files_of, pods, resources  # noqa: E402

SECCOMP = "/usr/share/containers/seccomp.json"  # of Debian's golang-github-containers-common
HOSTS = "127.0.0.1 localhost profd-centre.profd.svc\n"
COUNTED = """#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t ended;
static unsigned long long count;
__attribute__((noinline)) void leaf(void) { count++; __asm__ volatile(""); }
__attribute__((no_instrument_function)) static void on_end(int n) { ended = n; }
__attribute__((no_instrument_function)) int main(void)
{
    signal(SIGTERM, on_end);
    while (!ended) {
        for (int i = 0; i < 1000; i++) leaf();
        usleep(1000);
    }
    FILE *f = fopen("/truth/calls", "w");
    return !f || fprintf(f, "%llu", count) < 0 || fclose(f);
}
"""
BUSY = """int main(void) { for (volatile unsigned long n = 0;;) n++; }
"""


def seccomp(capabilities):
    """The profile of container engines for these capabilities, as the OCI runtime takes it."""
    with open(SECCOMP, encoding="utf-8") as f:
        profile = json.load(f)
    rules = []
    for s in profile["syscalls"]:
        only, never = s.get("includes") or {}, s.get("excludes") or {}
        if (set(only.get("caps", [])) <= set(capabilities) and not set(never.get("caps", [])) & set(capabilities)
                and ("arches" not in only or "amd64" in only["arches"])):
            rules.append({k: v for k, v in (("names", s["names"]), ("action", s["action"]), ("args", s.get("args")),
                                            ("errnoRet", s.get("errnoRet"))) if v})
    return {"defaultAction": profile["defaultAction"], "architectures": ["SCMP_ARCH_X86_64"], "syscalls": rules}


class Node:
    """What the pods share: images, directories of the node, the network."""

    def __init__(self, folder, layouts):
        self.folder, self.ids, self.holders = folder, 0, []
        self.network = self.hold("--net")
        run("nsenter", "-t", self.network, "-n", "ip", "link", "set", "lo", "up")
        self.images = {name: os.path.join(folder, "image", name) for name in image.PROGRAMS}
        os.mkdir(os.path.join(folder, "image"))
        for name, bundle in self.images.items():
            with open(os.path.join(layouts, name, "index.json"), encoding="utf-8") as f:
                self.tag = json.load(f)["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
            done = run("umoci", "unpack", "--image", f"{os.path.join(layouts, name)}:{self.tag}", bundle)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        for name, program in (("shop", self.compiled(COUNTED, "-pg")), ("cart", self.compiled(BUSY)),
                              ("nginx", "/usr/sbin/nginx")):
            self.foreign(name, program)

    def hold(self, *kind):
        """A process in a new namespace, which lives as long as the test; the number of the process."""
        holder = subprocess.Popen(["unshare", *kind, "--fork", "--kill-child", "sleep", "infinity"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.holders.append(holder)
        return until(lambda: run("pgrep", "-P", holder.pid, "sleep").stdout.strip())

    def compiled(self, text, *options):
        out = os.path.join(self.folder, f"program{len(os.listdir(self.folder))}")
        done = run("gcc", "-O2", "-fno-inline", *options, "-o", out, "-xc", "-", input=text)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return out

    def foreign(self, name, program):
        """An image of somebody else: a program, its libraries, and users that do not include profd."""
        layer = image.Layer()
        for link in ("lib", "lib64", "bin", "sbin"):
            layer.add(f"usr/{link}", mode=0o755, kind=tarfile.DIRTYPE)
            layer.add(link, mode=0o777, kind=tarfile.SYMTYPE, target=f"usr/{link}")
        for directory in ("var/log/nginx", "var/lib/nginx"):
            layer.add(directory, mode=0o755, kind=tarfile.DIRTYPE)
        layer.add("etc/passwd", b"root:x:0:0::/:/nonexistent\n")
        layer.add_file(program, f"usr/bin/{name}")
        for library in sorted(image.libraries_of([program])):
            layer.add_file(library)
        bundle = self.images[name] = os.path.join(self.folder, "image", name)
        os.makedirs(bundle)
        with tarfile.open(fileobj=io.BytesIO(layer.pack())) as tar:
            tar.extractall(os.path.join(bundle, "rootfs"))
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as f:
            json.dump({"process": {"args": [f"/usr/bin/{name}"], "env": ["PATH=/usr/bin"]}}, f)

    def path(self, path):
        """A path of the node."""
        return "/etc/machine-id" if path == "/etc/machine-id" else f"{self.folder}/node{path}"


class Pod:
    """The pod of an object, whose containers run from begin() on."""

    def __init__(self, node, objects, o):
        self.node, self.spec, self.running, self.logs = node, o["spec"]["template"]["spec"], {}, {}
        self.name, self.folder = o["metadata"]["name"] + "-0", tempfile.mkdtemp(prefix="pod-", dir=node.folder)
        self.processes = node.hold("--pid") if self.spec.get("shareProcessNamespace") else None
        self.paths = {}
        self.fields = {"spec.nodeName": "node-1", "metadata.name": self.name}
        claims = [{"name": c["metadata"]["name"]} for c in o["spec"].get("volumeClaimTemplates", [])]
        for v in self.spec.get("volumes", []) + claims:
            self.volume(objects, o["metadata"].get("namespace"), v)
        self.own = {}
        for path, text in (("/etc/hosts", HOSTS), ("/etc/hostname", self.name + "\n")):
            self.own[path] = os.path.join(self.folder, os.path.basename(path))
            self.put(self.own[path], text, 0o644)

    def put(self, path, text, mode, group=0):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        os.chown(path, 0, group)

    def volume(self, objects, namespace, v):
        group = self.spec.get("securityContext", {}).get("fsGroup", 0)
        if "hostPath" in v:
            self.paths[v["name"]] = path = self.node.path(v["hostPath"]["path"])
            if v["hostPath"]["type"] == "DirectoryOrCreate":
                os.makedirs(path, exist_ok=True)
            return
        self.paths[v["name"]] = path = os.path.join(self.folder, "volume-" + v["name"])
        os.mkdir(path)
        files = files_of(objects, namespace, v)
        os.chown(path, 0, group)
        os.chmod(path, 0o2777 if "emptyDir" in v else 0o2775)
        for name, text in (files or {}).items():
            kind = v.get("secret") or v.get("configMap")
            self.put(os.path.join(path, name), text, kind.get("defaultMode", 0o644), group)

    def config(self, c):
        """What the OCI runtime reads of a container."""
        with open(os.path.join(self.node.images[c["image"]], "config.json"), encoding="utf-8") as f:
            made = json.load(f)["process"]
        s = {**self.spec.get("securityContext", {}), **c.get("securityContext", {})}
        env = {e["name"]: e["value"] if "value" in e else self.fields[e["valueFrom"]["fieldRef"]["fieldPath"]]
               for e in c.get("env", [])}
        args = (c["command"] if "command" in c else made["args"]) + c.get("args", [])
        for name, value in env.items():
            args = [a.replace(f"$({name})", value) for a in args]
        caps = [f"CAP_{x}" for x in s.get("capabilities", {}).get("add", [])]
        effective = caps if s["runAsUser"] == 0 else []
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                  {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "mode=1777"]}]
        binds = [(p, f, True) for p, f in self.own.items()]
        binds += [(m["mountPath"], self.paths[m["name"]], m.get("readOnly", False)) for m in c.get("volumeMounts", [])]
        mounts += [{"destination": d, "type": "bind", "source": f, "options": ["rbind", "ro" if ro else "rw"]}
                   for d, f, ro in binds]
        spaces = [{"type": "mount"}, {"type": "ipc"}, {"type": "uts"},
                  {"type": "network", "path": f"/proc/{self.node.network}/ns/net"}]
        if not self.spec.get("hostPID"):
            spaces.append({"type": "pid", **({"path": f"/proc/{self.processes}/ns/pid"} if self.processes else {})})
        groups = [s[g] for g in ("fsGroup",) if g in s] + s.get("supplementalGroups", [])
        linux = {"namespaces": spaces, "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
                 "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]}
        if s.get("seccompProfile", {}).get("type") != "Unconfined":
            linux["seccomp"] = seccomp(caps)
        return {"ociVersion": "1.0.2", "hostname": self.name, "linux": linux, "mounts": mounts,
                "root": {"path": "rootfs", "readonly": s.get("readOnlyRootFilesystem", False)},
                "process": {"terminal": False, "cwd": "/", "args": args,
                            "env": made["env"] + [f"{n}={v}" for n, v in env.items()],
                            "user": {"uid": s["runAsUser"], "gid": s.get("runAsGroup", s["runAsUser"]),
                                     "additionalGids": groups},
                            "noNewPrivileges": s.get("allowPrivilegeEscalation") is False,
                            "capabilities": {"bounding": caps, "effective": effective, "permitted": effective}}}

    def start(self, c):
        self.node.ids += 1
        name = f"profd-{os.getpid()}-{self.node.ids}"
        bundle = os.path.join(self.folder, name)
        os.mkdir(bundle)
        run("cp", "-a", os.path.join(self.node.images[c["image"]], "rootfs"), bundle)
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.config(c), f)
        self.logs[c["name"]] = os.path.join(bundle, "log")
        with open(self.logs[c["name"]], "wb") as log:
            os.chmod(self.logs[c["name"]], 0o666)  # /dev/stdout of any user
            process = subprocess.Popen(["crun", "run", "--bundle", bundle, name], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log)
        self.running[c["name"]] = (name, process)
        return process

    def begin(self, tap):
        """Init containers, containers, and their probes of start and readiness."""
        for c in self.spec.get("initContainers", []):
            status = self.start(c).wait(60)
            tap.point(status == 0, f"{self.name}: {c['name']} ends", self.log(c["name"]))
        for c in self.spec["containers"]:
            self.start(c)
        for c in self.spec["containers"]:
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                command = c.get(kind, {}).get("exec", {}).get("command")
                if command:
                    ok = until(lambda: self.ended(c["name"]) or self.do(c["name"], *command).returncode == 0)
                    tap.point(ok and not self.ended(c["name"]), f"{self.name}, {c['name']}: {kind}, "
                              f"{' '.join(command[1:])[:60]}", self.log(c["name"]))
                elif kind in c:
                    number = next(p["containerPort"] for p in c["ports"] if p["name"] == c[kind]["tcpSocket"]["port"])
                    connect = f"import socket; socket.create_connection(('127.0.0.1', {number}))"
                    ok = until(lambda: self.ended(c["name"]) or run("nsenter", "-t", self.node.network, "-n",
                                                                    sys.executable, "-c", connect).returncode == 0)
                    tap.point(ok and not self.ended(c["name"]), f"{self.name}, {c['name']}: {kind}, port {number}",
                              self.log(c["name"]))

    def ended(self, name):
        return self.running[name][1].poll() is not None

    def do(self, name, *command):
        """Runs a command in a container, as the container's user."""
        c = next(c for c in self.spec["containers"] if c["name"] == name)
        s = {**self.spec.get("securityContext", {}), **c["securityContext"]}
        user = f"{s['runAsUser']}:{s.get('runAsGroup', s['runAsUser'])}"
        return run("crun", "exec", "--user", user, self.running[name][0], *command)

    def state(self, name):
        """Lines of /proc/PID/status of the first process of a container."""
        pid = json.loads(run("crun", "state", self.running[name][0]).stdout)["pid"]
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)

    def stop(self, name, number="TERM"):
        run("crun", "kill", self.running[name][0], number)
        return self.running[name][1].wait(60)

    def restart(self, name):
        """Ends a container by SIGKILL and starts it again, as the kubelet does. True: its start probe succeeds."""
        c = next(c for c in self.spec["containers"] if c["name"] == name)
        self.stop(name, "KILL")
        self.start(c)
        return until(lambda: self.ended(name) or
                     self.do(name, *c["startupProbe"]["exec"]["command"]).returncode == 0) and not self.ended(name)

    def log(self, name):
        with open(self.logs[name], encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def end(self):
        for name, process in self.running.values():
            if process.poll() is None:
                run("crun", "kill", name, "KILL")
                process.wait(60)
            run("crun", "delete", "--force", name)


def privileges(tap, pod, wanted):
    for name, (uid, caps) in wanted.items():
        s = pod.state(name)
        mask = sum(1 << {"CAP_IPC_LOCK": 14, "CAP_SYS_PTRACE": 19, "CAP_DAC_READ_SEARCH": 2, "CAP_PERFMON": 38}[x]
                   for x in caps)
        have = [int(s[k], 16) for k in ("CapEff", "CapPrm", "CapBnd", "CapAmb")]
        tap.point(s["Uid"].split()[1] == str(uid) and have == [mask, mask, mask, 0] and s["NoNewPrivs"] == "1",
                  f"{pod.name}, {name}: user {uid}, {' '.join(caps) or 'no capability'}", s)


def calls(pod, container, program, *options):
    done = pod.do(container, "/usr/local/bin/profctl", "report", program, "--json", *options)
    return json.loads(done.stdout)["totals"]["calls"] if done.returncode == 0 else 0


def counted(tap, node, objects, name, container, agent, by, centre):
    """Runs a workload, ends it, and compares its own count with the reports of its agent and of the centre."""
    o = copy.deepcopy(next(o for o, _ in pods(objects) if o["metadata"]["name"] == name))
    spec = o["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "truth", "emptyDir": {}})
    next(c for c in spec["containers"] if c["name"] == container)["volumeMounts"].append(
        {"name": "truth", "mountPath": "/truth"})
    pod = Pod(node, objects, o)
    try:
        pod.begin(tap)
        agent = agent or pod
        service = ("-l", f"service={container}")
        live = until(lambda: pod.ended(container) or
                     json.loads(agent.do(by, "/usr/local/bin/profctl", "ps", *service, "--json").stdout or
                                '{"rows":[]}')["rows"])
        tap.point(live and not pod.ended(container), f"{pod.name}: its process is attached", pod.log(container))
        if agent is not pod:
            tap.point(agent.restart(by), f"{agent.name}: {by} is killed and starts again meanwhile", agent.log(by))
        status = pod.stop(container)
        with open(os.path.join(pod.paths["truth"], "calls"), encoding="ascii") as f:
            truth = int(f.read())
        until(lambda: calls(agent, by, "shop", *service) == truth)
        got = calls(agent, by, "shop", *service)
        tap.point(status == 0 and got == truth > 0, f"{pod.name}: {got} calls in the agent's report, {truth} by the "
                  "program's own count", (agent.log(by), agent.do(by, "/usr/local/bin/profctl", "status").stdout))
        until(lambda: calls(centre, "profd", "shop", *service) == truth)
        got = calls(centre, "profd", "shop", *service)
        tap.point(got == truth, f"{pod.name}: {got} calls in the centre's report",
                  (agent.log("relay"), centre.log("nginx"), agent.do(by, "/usr/local/bin/profctl", "status").stdout))
    finally:
        pod.end()


def mount_groups():
    """crun knows control groups of version 2 only: in mounts of this test's own, they are where it looks."""
    if os.environ.get("PROFD_PODS_MOUNTS") is None:
        os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], dict(os.environ, PROFD_PODS_MOUNTS="1"))
    run("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup", check=True)


def main():
    mount_groups()
    layouts, folder = os.path.abspath(sys.argv[1]), tempfile.mkdtemp(prefix="profd-pods-")
    os.chmod(folder, 0o755)
    made = []
    with Tap() as tap:
        node = Node(folder, layouts)
        try:
            out = os.path.join(folder, "kubernetes")
            run("sh", "systemd/kubernetes/prepare.sh", out, "0", "localhost", cwd=ROOT, check=True)
            objects, examples = resources(out), resources(os.path.join(out, "examples"))
            for o in objects + examples:  # instead of a Service, which has the port 443
                if o["kind"] == "ConfigMap" and "profd.conf" in o["data"]:
                    o["data"]["profd.conf"] = o["data"]["profd.conf"].replace("centre.profd.svc",
                                                                              "centre.profd.svc:8443")
            by = {o["metadata"]["name"]: o for o, _ in pods(objects + examples)}
            for name in image.PROGRAMS:
                size = sum(os.path.getsize(os.path.join(layouts, name, "blobs/sha256", f))
                           for f in os.listdir(os.path.join(layouts, name, "blobs/sha256")))
                tap.point(size <= 30e6, f"the image {name} has {size / 1e6:.1f} MB, compressed")
            run(sys.executable, "systemd/image.py", BUILD, f"{folder}/again", node.tag, "profd", cwd=ROOT, check=True)
            both = [open(os.path.join(d, "profd/index.json"), encoding="utf-8").read()
                    for d in (layouts, f"{folder}/again")]
            tap.point(both[0] == both[1], "the image profd, made again, has the same digest", both)
            made.append(centre := Pod(node, objects, by["profd-centre"]))
            centre.begin(tap)
            again = centre.do("profd", *centre.spec["containers"][0]["startupProbe"]["exec"]["command"])
            tap.point(again.returncode == 0, "the probe that stores the agents' token succeeds again", again)
            privileges(tap, centre, {"profd": (7651, []), "nginx": (101, [])})
            made.append(agent := Pod(node, objects, by["profd-agent"]))
            with record_lock():
                agent.begin(tap)
                privileges(tap, agent, {"profd": (7651, []), "relay": (7652, []), "record": (0, [
                    "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_IPC_LOCK"])})
                counted(tap, node, examples, "shop", "shop", agent, "profd", centre)
                made.append(cart := Pod(node, examples, by["cart"]))
                cart.begin(tap)

                def ticks():
                    done = agent.do("profd", "/usr/local/bin/profctl", "report", "cart", "--json")
                    return json.loads(done.stdout)["totals"]["ticks"] if done.returncode == 0 else 0
                until(lambda: agent.ended("record") or ticks() > 0)
                tap.point(ticks() > 0, f"cart, which has nothing of profd: {ticks()} ticks in the agent's report",
                          agent.log("record"))
                agent.stop("record")
            counted(tap, node, examples, "till", "till", None, "profd", centre)
            agent.stop("profd")
            gone = agent.do("relay", "/usr/local/bin/profctl", "health", "--live")
            tap.point(gone.returncode == 69, "a probe fails when profd is gone", gone)
        finally:
            for pod in made:
                pod.end()
            for holder in node.holders:
                holder.kill()  # unshare ignores SIGTERM; its child goes with it
                holder.wait()
            shutil.rmtree(folder, ignore_errors=True)


main()
