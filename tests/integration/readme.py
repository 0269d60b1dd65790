"""The README shows what profctl does: its commands work in an empty directory, and its report is what profctl prints
for such uploads, but for the build, the times of day and the end of the graph, where the README breaks off."""
import os
import re
import shutil
import tempfile

from harness import BUILD, ROOT, Daemon, Tap, programs, run
from example_gmon import example

TICKS = [(4, 19, 14), (0, 19, 14)] + [(0, 19, 13)] * 4
DAEMON = re.compile(r"(?m)^profd .* &.*$")


def section(name):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        return f.read().split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def masked(text):
    """Without what differs from one run to the next."""
    text = re.sub(r"(?m)^(Build +)\S+ \S+$", r"\1…", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ( to \S+)?", "TIME", text)


def check_report(tap, d, folder):
    shown = section("A report").split("```\n", 2)[1]
    exe = os.path.join(folder, "cycle")
    for n, ticks in enumerate(TICKS):
        gmon = example(exe, os.path.join(folder, f"gmon.{n}"), ticks, start=0)
        assert d.ctl("upload", "-e", exe, "-l", f"host=web-{n + 1}", gmon).returncode == 0
    printed = d.ctl("report", exe, "--graph").stdout
    tap.point(masked(printed).startswith(masked(shown)), "the report in the README is profctl's", printed)


def check_commands(tap, d):
    """Every command of the five minutes, but the daemon's: a sleep takes its place, so that the program is job 2."""
    empty = tempfile.mkdtemp(prefix="profd-readme-empty-")
    commands = "".join(re.findall(r"```sh\n(.*?)```", section("Five minutes"), re.S))
    tap.point(len(DAEMON.findall(commands)) == 1, "the five minutes start one daemon", commands)
    commands = DAEMON.sub("sleep 1000 &", commands).replace("wait %2;", "wait %2 || true;")
    done = run("bash", "-c", f"set -em -o pipefail\ntrap 'kill $(jobs -p)' EXIT\n{commands}", cwd=empty,
               env={**d.env, "PATH": f"{BUILD}:{os.environ['PATH']}"})
    tap.point(done.returncode == 0, "every command of the README's five minutes works in an empty directory",
              (done.stderr + done.stdout)[-3000:])
    shutil.rmtree(empty)


def main():
    with Tap() as tap, Daemon() as d:
        folder = programs(tempfile.mkdtemp(prefix="profd-readme-"))
        check_report(tap, d, folder)
        check_commands(tap, d)
        shutil.rmtree(folder)


main()
