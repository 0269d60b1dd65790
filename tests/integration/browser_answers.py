"""What the dashboard answers about a fleet whose differences are known (tests/browser/answers.mjs), in a headless
Chromium where there is one."""
import os
import shutil
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
from harness import NODE_MODULES, PROFCTL, Daemon, free_port, profile, programs, run, set_ticks  # noqa: E402
from shop import NOW, build, fleet, send, send_sampled, send_tangle, upload  # noqa: E402

CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
MORE = """__attribute__((noinline)) int fresh(int i) { return n |= i; }
int retired(int i) { return n += 2 * i; }"""


SPIN = """static volatile long total;
__attribute__((noinline)) void spin(void)
{
    for (long i = 0; i < 1000000; i++) { total += i; }
}
int main(void) { for (int i = 0; i < 10; i++) { spin(); } return 0; }
"""


def upload_digest(d):
    """A program whose debug information has the MD5 of its source file: clang states it."""
    source, exe = os.path.join(d.folder, "spin.c"), os.path.join(d.folder, "spin")
    with open(source, "w") as f:
        f.write(SPIN)
    assert run("clang", "-O1", "-g", "-gdwarf-5", "-pg", "-o", exe, source).returncode == 0
    gmon = set_ticks(profile(d.folder, exe, [], 0), exe, lambda n: 60)
    assert d.ctl("upload", "-e", exe, "-l", "service=spin", gmon).returncode == 0


def run_with_library(d):
    """A program on zip whose time is in a library, liblzma."""
    text = os.path.join(d.folder, "text")
    with open(text, "w") as f:
        f.write("".join(f"{i * i % 1000003}\n" for i in range(600000)))
    assert d.ctl("run", "-l", "host=zip", "xz", "-k", text).returncode == 0


def fill(d):
    """Two versions on four hosts: parse got slower, render is called once more, fresh is new, retired is not called."""
    old, new = build(d.folder, "shop1", "", ""), build(d.folder, "shop2", MORE, "+ fresh(n)")
    host = lambda process: {"host": f"db{process % 4 + 1}", "service": "shop"}  # noqa: E731
    fleet(d, old, 1, "1.2", 1.0, 0, NOW - 7200, labels=host)
    fleet(d, new, 2, "1.3", 1.3, 1, NOW - 3000, fresh=True, labels=host)
    fleet(d, new, 3, "1.3", 1.6, 1, NOW, fresh=True, labels=lambda process: {"host": "db3", "service": "shop"})
    calc = os.path.join(programs(os.path.join(d.folder, "programs")), "calc")
    gmon = set_ticks(profile(d.folder, calc, ["-s", "7", "-n", "20000"], 0), calc, lambda n: 40 + 7 * n)
    assert d.ctl("upload", "-e", calc, "-l", "service=calc", gmon).returncode == 0
    upload_digest(d)
    run_with_library(d)
    tangle = send_tangle(d)
    pairs = {(f"p{i}", f"p{i ^ 1}"): 2 for i in range(4)}
    send(d, [upload(tangle, 2, {}, pairs, {"service": "tangle", "part": "cold"}, NOW, program="/srv/tangle")])
    send_sampled(d)


def add_hosts(d):
    """Four hosts of a centre: two arrive in the future, and so are up to date however long the test takes."""
    d.stop()
    with sqlite3.connect(os.path.join(d.state, "profd.db")) as db:
        for n, last in enumerate((NOW + 86400, NOW - 3 * 3600, NOW - 5 * 86400, NOW + 86400)):
            db.execute("INSERT INTO fleet_host (identity, name, first, last, clock, number, restored, tenant, machine, "
                       "version, delivered) VALUES (?, ?, ?, ?, 0, 0, 0, 1, '', '1.0', ?)",
                       (bytes([n] * 16), "db1 db2 db3 zip".split()[n], last * 10**9, last * 10**9, last * 10**9))
    db.close()
    d.start()


for name, found in (("chromium", CHROMIUM), ("node", shutil.which("node")),
                    ("playwright-core", os.path.isdir(os.path.join(NODE_MODULES, "playwright-core")))):
    if not found:
        print(f"ok 1 - the dashboard in a browser # SKIP {name} is not installed: sh tests/deps.sh check\n1..1")
        sys.exit(0)
port = free_port()
with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as daemon:
    fill(daemon)
    add_hosts(daemon)
    done = subprocess.run(["node", os.path.join(os.path.dirname(__file__), "../browser/answers.mjs"),
                           os.path.dirname(NODE_MODULES), f"http://127.0.0.1:{port}/", daemon.socket, PROFCTL,
                           sys.argv[1] if len(sys.argv) > 1 else ""],
                          env=dict(daemon.env, CHROMIUM=CHROMIUM, HOME=daemon.folder), timeout=1700)
sys.exit(done.returncode)
