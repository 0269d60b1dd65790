#!/usr/bin/python3
"""Formats of a release are frozen: what each released version stored is read by this one, with the same reports. Of
each version, tests/golden/released has a database with single uploads, sums and symbols, an upload in a spool, the body
of an UPLOAD (profd-protocol(7), with the encoding of counts), a gmon.out with its executable, the reports, and the
paths of schema/openapi.json without prose. Later versions may add members of JSON, parameters and values, and remove
none.

released.py write VERSION makes the files of this version."""
import glob
import io
import json
import lzma
import os
import re
import shutil
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
from harness import PROFCTL, PROFD, ROOT, Daemon, Gmon, Tap, bounds, run, symbols, until  # noqa: E402
from shop import NOW, build, build_id, fleet, send, upload  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "golden", "released")
KEPT = ("--keep-age", "0")
SHARED = {}  # parameters of the present interface, by their references
# Those that every release required; releases keep no shared ones.
REQUIRED = {"#/components/parameters/name": {"name": "name", "in": "query", "required": True}}


def report(d, build):
    """The listings of a report without its heading, and the rows of its JSON."""
    text, answer = d.ctl("report", build, "--names", "full").stdout, d.json("report", build, "--json")
    at = text.find("\n\t\t\t")
    assert at >= 0, text
    return {"text": text[at:], "json": {k: answer[k] for k in ("functions", "cycles", "totals") if k in answer}}


def bare(schema):
    """An interface without its prose."""
    if isinstance(schema, dict):
        return {k: bare(v) for k, v in schema.items()
                if k not in ("example", "examples") and not (k in ("description", "summary") and isinstance(v, str))}
    return [bare(v) for v in schema] if isinstance(schema, list) else schema


def key_of(value):
    return value.get("name", value.get("$ref")) if isinstance(value, dict) else None


def demanded(schema, where, shared):
    """What an object of an interface demands of requests. shared: parameters by their references."""
    listed, body = schema.get("parameters"), schema.get("requestBody")
    every = [shared.get(p.get("$ref"), p) for p in (listed if isinstance(listed, list) else ())]
    out = {f"parameter {p['name']}" for p in every if p.get("required") and p["in"] != "path"}  # paths name theirs
    if isinstance(body, dict) and body.get("required") is True:
        out.add("a body")
    if "/requestBody" in where and isinstance(schema.get("required"), list):
        out |= set(schema["required"])
    return out


def missing(old, new, where=""):
    """What new lacks or has otherwise. Its objects may have more members, and lists of an interface more items; but
    requests need not have more than before."""
    if isinstance(old, dict) and isinstance(new, dict):
        more = demanded(new, where, SHARED) - demanded(old, where, REQUIRED) if where.startswith("/openapi") else ()
        return [f"{where}: {m} is required now" for m in sorted(more)] + [
            m for k in old for m in (missing(old[k], new[k], f"{where}/{k}") if k in new else [f"{where}/{k}"])]
    if isinstance(old, list) and isinstance(new, list):
        if where.startswith("/openapi") and all(isinstance(v, str) for v in old):
            return [f"{where}: {v}" for v in old if v not in new]
        named = {key_of(v): v for v in new if key_of(v)} if where.startswith("/openapi") else {}
        if not named and len(old) != len(new):
            return [f"{where}: {len(old)} items, now {len(new)}"]
        return [m for i, v in enumerate(old) for m in
                missing(v, named.get(key_of(v), None) if key_of(v) in named else new[min(i, len(new) - 1)],
                        f"{where}/{i}")]
    return [] if old == new else [f"{where}: {old!r}, now {new!r}"]


def reports(folder):
    """What this version says of the stored files: {name: text}."""
    out = {}
    exe = os.path.join(folder, "exe")
    with Daemon(*KEPT, start=False) as d:
        restored = run(PROFD, "--restore", os.path.join(folder, "profd.db"), "--state-dir", d.state)
        assert restored.returncode == 0, restored.stderr
        out["database"] = report(d.start(), build_id(exe))
    with Daemon(*KEPT) as d:
        with open(os.path.join(folder, "upload"), "rb") as f:
            send(d, [f.read()])
        assert d.ctl("symbols", exe).returncode == 0
        out["upload"] = report(d, build_id(exe))
    with Daemon(*KEPT) as d:
        shutil.copytree(os.path.join(folder, "spool"), os.path.join(d.folder, "spool"), copy_function=shutil.copyfile)
        os.chmod(os.path.join(d.folder, "spool"), 0o700)
        assert d.ctl("upload", "-e", exe, "-l", "from=file", os.path.join(folder, "gmon.out")).returncode == 0
        out["spool"] = report(d, build_id(exe))
    out["gprof"] = {"text": run(PROFCTL, "gprof", "-b", exe, os.path.join(folder, "gmon.out")).stdout}
    with open(os.path.join(ROOT, "schema", "openapi.json"), encoding="utf-8") as f:
        interface = json.load(f)
    SHARED.update((f"#/components/parameters/{k}", p) for k, p in interface["components"]["parameters"].items())
    out["openapi"] = bare(interface["paths"])
    return out


def make(folder):
    with Daemon("--raw-age", "1s") as d:
        exe = build(d.folder, "shop", "", "")
        shutil.copy(exe, os.path.join(folder, "exe"))
        fleet(d, exe, 1, "1", 1, 0, NOW - 7200)
        until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0)
        d.stop()
        d.options = ()
        d.start()
        bodies = [upload(exe, 7 + i, {"parse": 7, "step": 5}, {("main", "step"): 2, ("step", "parse"): 9 + i},
                         {"version": "2"}, NOW) for i in range(3)]
        send(d, bodies[:2])
        assert d.ctl("backup", os.path.join(folder, "profd.db")).returncode == 0
        with open(os.path.join(folder, "upload"), "wb") as f:
            f.write(bodies[2])
        at, (low, high) = {name: place[0] for name, place in symbols(exe).items()}, bounds(exe)
        gmon = Gmon(low, high).tick(at["parse"] + 8, 40).tick(at["render"] + 8, 60)
        for caller, callee, calls in (("main", "step", 3), ("step", "parse", 4), ("step", "render", 5)):
            gmon.arc(at[caller] + 12, at[callee], calls)
        d.stop()
        done = d.ctl("upload", "-e", exe, gmon.write(os.path.join(folder, "gmon.out")))
        assert os.path.isdir(os.path.join(d.folder, "spool")), done
        shutil.copytree(os.path.join(d.folder, "spool"), os.path.join(folder, "spool"))


def write(version):
    os.makedirs(FOLDER, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        with open(os.path.join(folder, "reports.json"), "w", encoding="utf-8") as f:
            json.dump(reports(folder), f)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(folder, arcname=".")
        path = os.path.join(FOLDER, f"{version}.tar.xz")
        with open(path, "wb") as f:
            f.write(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{path}: {os.path.getsize(path)} bytes")


def main():
    with Tap() as tap:
        archives = sorted(glob.glob(os.path.join(FOLDER, "*.tar.xz")))
        tap.point(archives, "there are files of released versions")
        for archive in archives:
            version = re.sub(r"\.tar\.xz$", "", os.path.basename(archive))
            with tempfile.TemporaryDirectory() as folder:
                with tarfile.open(archive) as tar:
                    tar.extractall(folder)
                with open(os.path.join(folder, "reports.json"), encoding="utf-8") as f:
                    stored = json.load(f)
                got = json.loads(json.dumps(reports(folder)))
                for name in stored:
                    lacks = missing(stored[name], got[name], f"/{name}")
                    tap.point(not lacks, f"{version}: /{name} is what it was; before the release of {version}, "
                                         f"released.py write {version} makes it anew", "\n".join(lacks))


write(sys.argv[2]) if sys.argv[1:2] == ["write"] else main()
