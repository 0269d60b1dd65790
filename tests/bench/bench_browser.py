"""make bench: the dashboard in a headless Chromium: what a reader of a build with 20,000 functions waits for, medians
of ROUNDS."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphs  # noqa: E402
import stack_tree  # noqa: E402
from harness import NODE_MODULES, ROOT, Daemon, free_port  # noqa: E402

ROUNDS, CHROMIUM = os.environ.get("ROUNDS", "5"), shutil.which(os.environ.get("CHROMIUM", "chromium"))
SIZES = [(20000, 160000), (100000, 200000)]


def asked(what):
    """Milliseconds that something may take."""
    if "first paint" in what:
        return 180
    if "all builds" in what or "the cycles" in what:
        return 1000
    return 450 if "content" in what or "CPU time" in what else 50


def rows(functions, arcs):
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        exe, first = graphs.executable(d.folder, functions)
        big = graphs.giant_cycle(os.path.join(d.folder, "big.gmon"), exe, first, functions, arcs)
        assert d.ctl("upload", "-e", exe, big, timeout=300).returncode == 0
        path, build, begin = stack_tree.executable(d.folder, 4000)
        assert d.ctl("symbols", path).returncode == 0
        stack_tree.send(d.socket, path, build, begin, 4000, 20000)
        done = subprocess.run(["node", os.path.join(ROOT, "tests/browser/bench.mjs"), os.path.dirname(NODE_MODULES),
                               f"http://127.0.0.1:{port}/", ROUNDS],
                              env=dict(d.env, CHROMIUM=CHROMIUM, HOME=d.folder), capture_output=True, text=True,
                              timeout=900)
        assert done.returncode == 0, done.stderr
        for what, ms in json.loads(done.stdout).items():
            print(f"{f'dashboard, {functions:,} functions: {what}':<92} {ms:8.0f} ms  asked ≤ {asked(what):,}",
                  flush=True)


def main():
    if not (CHROMIUM and shutil.which("node") and os.path.isdir(os.path.join(NODE_MODULES, "playwright-core"))):
        print("# no chromium, node or playwright-core (sh tests/deps.sh check): no figures of the dashboard")
        return
    for functions, arcs in SIZES:
        rows(functions, arcs)


main()
