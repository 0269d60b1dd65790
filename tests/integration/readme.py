"""The report in the README is what profctl prints for such uploads, but for the build, the times of day and the end of
the graph, where the README breaks off."""
import os
import re
import shutil
import tempfile

from harness import ROOT, Daemon, Tap, programs
from example_gmon import example

TICKS = [(4, 19, 14), (0, 19, 14)] + [(0, 19, 13)] * 4


def masked(text):
    """Without what differs from one run to the next."""
    text = re.sub(r"(?m)^(Build +)\S+ \S+$", r"\1…", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ( to \S+)?", "TIME", text)


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        section = f.read().split("\n## A report\n", 1)[1]
    shown = section.split("```\n", 2)[1]
    with Tap() as tap, Daemon() as d:
        folder = programs(tempfile.mkdtemp(prefix="profd-readme-"))
        exe = os.path.join(folder, "cycle")
        for n, ticks in enumerate(TICKS):
            gmon = example(exe, os.path.join(folder, f"gmon.{n}"), ticks, start=0)
            assert d.ctl("upload", "-e", exe, "-l", f"host=web-{n + 1}", gmon).returncode == 0
        printed = d.ctl("report", exe, "--graph").stdout
        if not tap.point(masked(printed).startswith(masked(shown)), "the report in the README is profctl's"):
            print("\n".join(f"  # {line}" for line in printed.splitlines()))
        shutil.rmtree(folder)


main()
