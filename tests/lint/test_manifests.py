#!/usr/bin/env python3
"""The manifests of systemd/kubernetes: each object beside the published API (the models of Debian's
python3-kubernetes), with no unknown field; and everything that one part names exists in the other: volumes, keys, files
and programs in the images, ports, labels. tests/nspawn/pods.py runs the pods."""
import copy
import io
import os
import re
import shutil
import sys
import tarfile
import tempfile

from kubernetes.client import models

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(TOP, d) for d in ("tests/integration", "tests/nspawn", "systemd")]
import image  # noqa: E402
from harness import BUILD, ROOT, Tap, run  # noqa: E402
from manifests import containers, files_of, pods, resources  # noqa: E402

FOREIGN = {"nginx", "shop", "cart"}  # images that are not ours: of the proxy, and of the examples
# Pod Security, level baseline, of what the pods of this folder could have.
HOST = ("hostPID", "hostIPC", "hostNetwork")
CAPABILITIES = {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
                "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
PLAIN = {"str": str, "int": int, "float": (int, float), "bool": bool}


def judge(value, kind, path, bad):
    """Compares a value with a type of the API."""
    if (generic := re.fullmatch(r"(list|dict)[\[(](?:str, )?(.*)[\])]", kind)):
        if not isinstance(value, {"list": list, "dict": dict}[generic.group(1)]):
            bad.append(f"{path}: not a {generic.group(1)}")
            return
        for key, one in enumerate(value) if isinstance(value, list) else value.items():
            judge(one, generic.group(2), f"{path}.{key}", bad)
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (isinstance(value, bool) and kind != "bool"):
            bad.append(f"{path}: {value!r} is not of the type {kind}")
    elif hasattr(models, kind):
        model = getattr(models, kind)
        names = {wire: name for name, wire in model.attribute_map.items()}
        if not isinstance(value, dict):
            bad.append(f"{path}: not an object")
            return
        bad += [f"{path}: there is no field {f}" for f in value if f not in names]
        try:
            model(**{names[f]: v for f, v in value.items() if f in names})
        except ValueError as e:  # a field is missing, or has a value that is not allowed
            bad.append(f"{path}: {e}")
        for f, v in value.items():
            if f in names:
                judge(v, model.openapi_types[names[f]], f"{path}.{f}", bad)
    elif kind != "object":
        bad.append(f"{path}: unknown type {kind}")


def judge_object(o, bad):
    group, _, version = o.get("apiVersion", "").rpartition("/")
    model = f"{version.capitalize()}{o.get('kind')}"
    if group not in ("", "apps") or not hasattr(models, model):
        bad.append(f"{o.get('kind')}: not in the API")
    else:
        judge(o, model, f"{o['kind']} {o['metadata']['name']}", bad)


class Pod:
    """One container's view: which files it has, from its image and its mounts."""

    def __init__(self, objects, o, spec, container, images):
        namespace = o["metadata"].get("namespace")
        claims = [{"name": c["metadata"]["name"], "claim": {}} for c in o["spec"].get("volumeClaimTemplates", [])]
        self.volumes = {v["name"]: v for v in spec.get("volumes", []) + claims}
        self.image, self.mounts, self.bad = images.get(container["image"]), {}, []
        for m in container.get("volumeMounts", []):
            if m["name"] not in self.volumes:
                self.bad.append(f"no volume {m['name']}")
                continue
            try:
                self.mounts[m["mountPath"]] = files_of(objects, namespace, self.volumes[m["name"]])
            except KeyError as e:
                self.bad.append(f"volume {m['name']}: there is no {e}")

    def judge_path(self, path):
        """A path must be in the image, or in a mount; there, files are known if it is a ConfigMap or a Secret."""
        mount = max((m for m in self.mounts if path == m or path.startswith(m + "/")), key=len, default=None)
        if mount is not None:
            files = self.mounts[mount]
            if files is not None and path != mount and os.path.relpath(path, mount) not in files:
                self.bad.append(f"{path} is not in the volume at {mount}")
        elif self.image is not None and path.lstrip("/") not in self.image:
            self.bad.append(f"{path} is neither in the image nor in a volume")


def cross(objects, images):
    """What names what is not there."""
    bad = []
    for o, spec in pods(objects):
        used = set()
        labels = o["spec"]["template"]["metadata"]["labels"]
        if any(labels.get(k) != v for k, v in o["spec"]["selector"]["matchLabels"].items()):
            bad.append(f"{o['metadata']['name']}: the selector is not that of the pods")
        for c in containers(spec):
            name = f"{o['metadata']['name']}, {c['name']}"
            if c["image"] not in images and c["image"] not in FOREIGN:
                bad.append(f"{name}: make image makes no image {c['image']}")
            pod = Pod(objects, o, spec, c, images)
            used |= {m["name"] for m in c.get("volumeMounts", [])}
            words = [*c.get("command", []), *c.get("args", []), *(e.get("value", "") for e in c.get("env", []))]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                words += c.get(probe, {}).get("exec", {}).get("command", [])
                port = c.get(probe, {}).get("tcpSocket", {}).get("port")
                if port and port not in [p["name"] for p in c.get("ports", [])]:
                    pod.bad.append(f"{probe}: there is no port {port}")
            texts = [text for files in pod.mounts.values() for n, text in (files or {}).items() if n.endswith(".conf")]
            for text in texts:  # what a configuration names is a path at the end of its line
                words += re.findall(r"^[^#\n]*?[\s=](/\S+?);?$", re.sub(r" #.*", "", text), re.M)
            for path in (w for w in words if re.match(r"/[\w./-]+$", w) and not w.startswith(("/dev/", "/api/"))):
                if not path.startswith("/var/lib/profd-record/"):
                    pod.judge_path(path)
            if not c.get("command", ["/"])[0].startswith("/") and c["image"] in images:
                pod.bad.append(f"{c['command'][0]}: there is no shell that looks for programs")
            bad += [f"{name}: {b}" for b in pod.bad]
        bad += [f"{o['metadata']['name']}: nothing mounts the volume {v['name']}" for v in spec.get("volumes", [])
                if v["name"] not in used]
    for o in (o for o in objects if o["kind"] == "Service"):
        found = [spec for p, spec in pods(objects) if p["metadata"]["namespace"] == o["metadata"]["namespace"]
                 and o["spec"]["selector"].items() <= p["spec"]["template"]["metadata"]["labels"].items()]
        ports = [p["name"] for spec in found for c in spec["containers"] for p in c.get("ports", [])]
        bad += [f"service {o['metadata']['name']}: no pod has the port {p['targetPort']}" for p in o["spec"]["ports"]
                if p["targetPort"] not in ports]
    return bad


def baseline(spec):
    """What Pod Security refuses in the level baseline."""
    bad = [f for f in HOST if spec.get(f)] + [v["name"] for v in spec.get("volumes", []) if "hostPath" in v]
    for c in containers(spec):
        s = c.get("securityContext", {})
        bad += [x for x in s.get("capabilities", {}).get("add", []) if x not in CAPABILITIES]
        bad += ["privileged"] * bool(s.get("privileged")) + ["hostPort" for p in c.get("ports", []) if "hostPort" in p]
        bad += ["Unconfined"] * (s.get("seccompProfile", {}).get("type") == "Unconfined")
    return bad


def unprivileged(spec, allowed):
    """Containers that have more than nothing, beside those that are allowed."""
    bad = []
    for c in containers(spec):
        s = {**spec.get("securityContext", {}), **c.get("securityContext", {})}
        have = set(s.get("capabilities", {}).get("add", []))
        if (not s.get("readOnlyRootFilesystem") or s.get("allowPrivilegeEscalation") is not False
                or s["capabilities"].get("drop") != ["ALL"] or have != allowed.get(c["name"], set())
                or (s.get("runAsUser", 0) == 0) != (c["name"] in allowed)):
            bad.append(c["name"])
    return bad


def page(tap, objects):
    """The commands of profd-container(7) name what there is."""
    with open(os.path.join(ROOT, "daemon/profd-container.7"), encoding="utf-8") as f:
        text = f.read().split(".Sh KUBERNETES\n")[1].replace("\\e\n", "")
    commands = re.findall(r"^\$ (.*)", text, re.M)
    first = commands[:next(i for i, c in enumerate(commands) if " exec " in c) + 1]
    made = run("make", "-n", "kubernetes", "REGISTRY=registry.example/team", cwd=ROOT).stdout
    names = {(o["metadata"]["namespace"], o["metadata"]["name"] + "-0", c["name"])
             for o, spec in pods(objects) if o["kind"] == "StatefulSet" for c in spec["containers"]}
    asked = {m for c in commands for m in re.findall(r"kubectl -n (\S+) exec (\S+) -c (\S+) --", c)}
    out = next(re.search(r"apply -k profd/(\S+)", c).group(1) for c in first if "apply" in c)
    tap.point(len(first) <= 4 and asked and asked <= names and f"prepare.sh {out} " in made,
              f"profd-container(7): {len(first)} commands from the sources to a report, and pods that there are",
              (commands, names, made[-300:]))


def controls(tap, objects, images):
    """Faults that the checks must find."""
    def changed(change):
        copied = copy.deepcopy(objects)
        change({(o["kind"], o["metadata"]["name"]): o for o in copied})
        bad = []
        for o in copied:
            judge_object(o, bad)
        return bad + cross(copied, images)

    def spec(by, kind="DaemonSet", name="profd-agent"):
        return by[kind, name]["spec"]["template"]["spec"]
    for what, word, change in (
            ("an unknown field", "hostPid", lambda by: spec(by).update(hostPid=True)),
            ("a wrong type", "bool", lambda by: spec(by).update(hostPID="yes")),
            ("a missing field", "container_port", lambda by: spec(by, "StatefulSet", "profd-centre")["containers"][1][
                "ports"][0].pop("containerPort")),
            ("a missing volume", "no volume", lambda by: spec(by)["volumes"].pop(0)),
            ("a missing key", "relay.token", lambda by: by["Secret", "profd-token"]["data"].clear()),
            ("a wrong program", "profctl-x", lambda by: spec(by)["containers"][2].update(
                command=["/usr/local/bin/profctl-x"])),
            ("a wrong path", "ca.crt", lambda by: by["ConfigMap", "profd-agent"]["data"].update(
                {"profd.conf": "tier-ca-file = /etc/profd-ca/ca.crt\n"})),
            ("a wrong image", "profd-agnet", lambda by: spec(by)["containers"][0].update(image="profd-agnet")),
            ("a wrong port", "https", lambda by: spec(by, "StatefulSet", "profd-centre")["containers"][1].update(
                ports=[]))):
        bad = changed(change)
        tap.point(any(word in b for b in bad), f"{what} is found", bad)


def main():
    folder = tempfile.mkdtemp(prefix="profd-kubernetes-")
    with Tap() as tap:
        out = os.path.join(folder, "kubernetes")
        done = run("sh", "systemd/kubernetes/prepare.sh", out, "1.2.3", "registry.example/team", cwd=ROOT)
        token = open(os.path.join(out, "relay.token")).read()
        again = run("sh", "systemd/kubernetes/prepare.sh", out, "1.2.3", "registry.example/team", cwd=ROOT)
        tap.point(done.returncode == 0 == again.returncode and open(os.path.join(out, "relay.token")).read() == token,
                  "prepare.sh writes the kustomization, and keeps the token", done.stderr + again.stderr)
        images = {}
        for name in image.PROGRAMS:
            with tarfile.open(fileobj=io.BytesIO(image.fill(BUILD, name, folder))) as tar:
                images[name] = set(tar.getnames())
        shells = [n for names in images.values() for n in names if re.search(r"bin/(.*sh|busybox|perl|python.*)$", n)]
        tap.point(not shells, "the images have no shell", shells)
        needed = re.findall(r"Name: GLIBC_2\.(\d+)", run("readelf", "-V", f"{BUILD}/libprofd-collect.so").stdout)
        said = [re.search(r"glibc 2\.(\d+) or\s+later", open(os.path.join(ROOT, f), encoding="utf-8").read()).group(1)
                for f in ("daemon/profd-container.7", "systemd/kubernetes/examples/counted.yaml")]
        tap.point(needed and max(map(int, needed)) <= min(map(int, said)),
                  f"the collector needs glibc 2.{max(map(int, needed))}, and the manual says so", said)
        first, examples = resources(out), resources(os.path.join(out, "examples"))
        bad = []
        for o in first + examples:
            judge_object(o, bad)
        tap.point(not bad, f"{len(first + examples)} objects are as the API has them, without unknown fields", bad)
        bad = cross(first, images) + cross(examples, images)
        tap.point(not bad, "volumes, keys, paths, images, ports and labels that are named exist", bad)
        specs = {o["metadata"]["name"]: spec for o, spec in pods(first + examples)}
        allowed = {"profd-agent": {"directories": {"CHOWN", "FOWNER"},
                                   "record": {"PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "IPC_LOCK"}}}
        bad = {n: b for n, spec in specs.items() if (b := unprivileged(spec, allowed.get(n, {})))}
        tap.point(len(specs) == 5 and not bad, "all containers but two have no capability, are not root, and write "
                  "nothing in their root", bad)
        tap.point(not baseline(specs["till"]) and baseline(specs["shop"]) and baseline(specs["profd-agent"]),
                  "the sidecar passes Pod Security's baseline, what has hostPath does not", baseline(specs["till"]))
        if shutil.which("kubectl"):  # Debian 12 has one that is too old for it
            built = [run("kubectl", "kustomize", o) for o in (out, os.path.join(out, "examples"))]
            tap.point(all(b.returncode == 0 for b in built) and
                      sum(len(re.findall(r"^kind:", b.stdout, re.M)) for b in built) == len(first + examples),
                      "kubectl kustomize has the same objects", [b.stderr for b in built])
        page(tap, first)
        controls(tap, first, images)
        shutil.rmtree(folder)


main()
