#!/usr/bin/env python3
"""Container images from programs that are built: image.py BUILD-FOLDER OUT VERSION NAME...

Writes an OCI image layout OUT/NAME for each name, without a registry, a container engine or rights of root. An image
has one layer: programs, the libraries that they load, certificates of CAs, and the copyrights of all these; no shell.
The same inputs make the same bytes: names are sorted, times are SOURCE_DATE_EPOCH or 0, and gzip writes no time."""
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile

# Users and groups of systemd/profd.sysusers, with numbers, because hosts and volumes know only these.
USERS = {"root": 0, "profd": 7651, "profd-relay": 7652, "profd-record": 7653, "nobody": 65534}
GROUPS = {**USERS, "profd-read": 7654, "profd-admin": 7655}
DAEMON = ["/usr/local/sbin/profd", "--state-dir", "/var/lib/profd", "--socket", "/run/profd/profd.sock"]
PROGRAMS = {"profd": {"profd": "usr/local/sbin", "profctl": "usr/local/bin"}}
PROGRAMS["profd-agent"] = {**PROGRAMS["profd"], "profd-relay": "usr/local/sbin", "libprofd-collect.so": "usr/local/lib"}
# install(1) makes directories in volumes, and copies the collector to a volume of the program that it counts.
TOOLS = {"profd": [], "profd-agent": ["/usr/bin/install"]}
LATE = ["libcapstone.so.4", "libcurl.so.4", "libdebuginfod.so.1"]  # loaded at run time (proto/late.h)
DIRECTORIES = {"tmp": (0o1777, 0), "etc/profd": (0o755, 0), "run/profd": (0o755, USERS["profd"]),
               "var/lib/profd": (0o700, USERS["profd"]), "var/lib/profd-record": (0o700, USERS["profd-record"])}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def libraries_of(files):
    """The libraries that the loader finds for these files, under the names by which it finds them."""
    out = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    missing = re.findall(r"(\S+) => not found", out)
    if missing:
        raise SystemExit(f"image.py: {', '.join(missing)} of {' '.join(files)} is not installed; run make deps")
    return set(re.findall(r"(/\S+) \(0x", out))


def copyrights_of(files):
    """The copyright files of the Debian packages of these files; none on another system."""
    names = [f for file in files for f in {file, os.path.realpath(file), re.sub("^/usr/", "/", os.path.realpath(file))}]
    out = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True).stdout
    packages = set(re.findall(r"^([^:,\s]+)(?::\w+)?: /", out, re.M))
    return [f"/usr/share/doc/{p}/copyright" for p in packages if os.path.exists(f"/usr/share/doc/{p}/copyright")]


class Layer:
    """What the tar archive gets: path → (header, bytes)."""

    def __init__(self):
        self.entries = {}

    def add(self, path, data=b"", mode=0o644, kind=tarfile.REGTYPE, owner=0, target=""):
        if path and path not in self.entries:
            self.add(os.path.dirname(path), mode=0o755, kind=tarfile.DIRTYPE)
            t = tarfile.TarInfo(path)
            t.size, t.mode, t.type, t.uid, t.gid, t.linkname = len(data), mode, kind, owner, owner, target
            t.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
            self.entries[path] = (t, data)

    def add_file(self, source, path=None):
        """A file of this machine, at its real directory: /lib is a link to usr/lib here and in the image."""
        if path is None:
            path = os.path.join(os.path.realpath(os.path.dirname(source)), os.path.basename(source)).lstrip("/")
        with open(source, "rb") as f:
            data = f.read()
        self.add(path, data, 0o755 if data[:4] == b"\x7fELF" else 0o644)

    def pack(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(self.entries):
                header, data = self.entries[path]
                tar.addfile(header, io.BytesIO(data) if header.isreg() else None)
        return out.getvalue()


def fill(build, name, scratch):
    layer = Layer()
    for link in ("lib", "lib64", "bin", "sbin"):
        layer.add(f"usr/{link}", mode=0o755, kind=tarfile.DIRTYPE)
        layer.add(link, mode=0o777, kind=tarfile.SYMTYPE, target=f"usr/{link}")
    for path, (mode, owner) in DIRECTORIES.items():
        layer.add(path, mode=mode, kind=tarfile.DIRTYPE, owner=owner)
    layer.add("etc/passwd", "".join(f"{n}:x:{i}:{i}::/:/nonexistent\n" for n, i in USERS.items()).encode())
    # profd makes its HTTP socket one of profd-read.
    layer.add("etc/group", "".join(f"{n}:x:{i}:{'profd' * (n == 'profd-read')}\n" for n, i in GROUPS.items()).encode())
    layer.add("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    built = []
    for program, folder in PROGRAMS[name].items():
        built.append(os.path.join(scratch, program))
        # Function names stay, so that profd can be profiled itself.
        subprocess.run(["strip", "--strip-debug", "-o", built[-1], os.path.join(build, program)], check=True)
        layer.add_file(built[-1], f"{folder}/{program}")
    found = libraries_of(built)
    where = next(os.path.dirname(p) for p in found if p.endswith("/libc.so.6"))
    loaded = [*TOOLS[name], *(os.path.join(where, late) for late in LATE)]
    found |= libraries_of(loaded) | set(loaded)
    for file in sorted(found | {CERTIFICATES} | set(copyrights_of(found))):
        layer.add_file(file)
    layer.add_file("LICENSE", "usr/share/doc/profd/copyright")
    return layer.pack()


def blob(folder, data):
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(folder, "blobs/sha256", digest), "wb") as f:
        f.write(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def write(build, out, version, name):
    folder = os.path.join(out, name)
    subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(os.path.join(folder, "blobs/sha256"))
    tar = fill(build, name, folder)
    for program in PROGRAMS[name]:
        os.unlink(os.path.join(folder, program))
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    oci = "application/vnd.oci.image."
    layer = {"mediaType": f"{oci}layer.v1.tar+gzip", **blob(folder, gzip.compress(tar, 9, mtime=0))}
    probe = {"Test": ["CMD", "/usr/local/bin/profctl", "health"], "Interval": 10**10, "StartPeriod": 6 * 10**10}
    config = {"architecture": machine, "os": "linux",
              "config": {"User": str(USERS["profd"]), "Entrypoint": DAEMON, "WorkingDir": "/",
                         "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/bin", "HOME=/var/lib/profd"],
                         "Volumes": {"/var/lib/profd": {}, "/run/profd": {}}, "Healthcheck": probe},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]}}
    manifest = {"schemaVersion": 2, "mediaType": f"{oci}manifest.v1+json",
                "config": {"mediaType": f"{oci}config.v1+json", **blob(folder, json.dumps(config).encode())},
                "layers": [layer]}
    names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"localhost/{name}:{version}"}
    index = {"schemaVersion": 2, "manifests": [{"mediaType": f"{oci}manifest.v1+json", "annotations": names,
                                                **blob(folder, json.dumps(manifest).encode())}]}
    for file, value in (("index.json", index), ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            json.dump(value, f)
    print(f"{folder}:{version}  {layer['size'] / 1e6:.1f} MB compressed, {len(tar) / 1e6:.1f} MB")


if __name__ == "__main__":
    for each in sys.argv[4:]:
        write(*sys.argv[1:4], each)
