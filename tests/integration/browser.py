"""The dashboard in a headless Chromium (tests/browser/dashboard.mjs), where there is one: with the data of real programs."""
import os
import shutil
import subprocess
import sys

from formats_hostile import hostile_program
from harness import BUILD, Daemon, profile, programs, run

CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
RUNS = {"cycle": ["30"], "calc": ["-s", "7", "-n", "30000"], "shapes": ["60000"], "uselib": ["50"], "sorter": ["100000", "2"]}


def skip(why):
    print(f"ok 1 - the dashboard in a browser # SKIP {why}\n1..1")
    sys.exit(0)


def modules():
    """playwright-core and axe-core, installed once below the build folder."""
    folder = os.path.join(BUILD, "browser")
    if not os.path.isdir(os.path.join(folder, "node_modules", "axe-core")):
        os.makedirs(folder, exist_ok=True)
        done = run("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "playwright-core@1.55", "axe-core@4", timeout=120)
        if done.returncode != 0:
            skip(f"npm cannot install playwright-core: {done.stderr.strip().splitlines()[-1:]}")
    return folder


if CHROMIUM is None or shutil.which("node") is None or shutil.which("npm") is None:
    skip("no chromium, node or npm here")
folder = modules()
port = 20000 + os.getpid() % 20000
with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
    built = programs(os.path.join(d.folder, "programs"))
    for name, arguments in RUNS.items():
        for n in range(2):
            assert d.ctl("upload", "-e", os.path.join(built, name), "-l", f"round={n}",
                         profile(d.folder, os.path.join(built, name), arguments, n)).returncode == 0
    exe, gmon = hostile_program(d.folder)
    assert d.ctl("upload", "-e", exe, gmon).returncode == 0
    done = subprocess.run(["node", os.path.join(os.path.dirname(__file__), "../browser/dashboard.mjs"), folder,
                           f"http://127.0.0.1:{port}/", *sys.argv[1:2]], env=dict(d.env, CHROMIUM=CHROMIUM, HOME=d.folder), timeout=300)
sys.exit(done.returncode)
