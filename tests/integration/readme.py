"""The README shows what profctl does: its commands work in an empty directory, and its report is what profctl prints
for such uploads, but for the build, the times of day and the end of the graph, where the README breaks off."""
import concurrent.futures
import functools
import os
import re
import shutil
import signal
import tempfile

from harness import BUILD, ROOT, Daemon, Tap, programs, run
from example_gmon import example
from look import Terminal

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


def in_script(shell, commands, env, folder):
    """The commands as a script without job control; the text of what it printed, and whether each succeeded. The wait
    says how the program ended."""
    script = "set -e\n" + commands.replace("wait $!;", "wait $! || [ $? = 137 ];")
    done = run(shell, "-c", script, cwd=folder, env=env)
    return done.returncode == 0, done.stderr + done.stdout


def typed(commands, env, folder):
    """The same, pasted at the prompt of a bash, which prints the status of each."""
    shown = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], {**env, "PS1": "<$?>", "PS2": ""},
                     what=lambda data: b"<0>" in data, keys=f"cd {folder}\n{commands}\nexit\n".encode())
    return set(re.findall(r"<(\d+)>", shown.text)) == {"0"}, shown.text


def check_commands(way):
    """Every command of the five minutes, but the daemon's, in an empty directory: ok, text, processes left over."""
    empty = tempfile.mkdtemp(prefix="profd-readme-empty-")
    commands = DAEMON.sub("", "".join(re.findall(r"```sh\n(.*?)```", section("Five minutes"), re.S)))
    with Daemon() as d:
        ok, text = way(commands, {**d.env, "PATH": f"{BUILD}:{os.environ['PATH']}"}, empty)
        left = d.ctl("ps", "--pids").stdout.split()
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
    shutil.rmtree(empty)
    return ok, text, left


WAYS = {"bash script": functools.partial(in_script, "bash"), "sh script": functools.partial(in_script, "sh"),
        "bash at a terminal": typed}


def check_ways(tap):
    tap.point(len(DAEMON.findall(section("Five minutes"))) == 1, "the five minutes start one daemon")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for name, (ok, text, left) in zip(WAYS, pool.map(check_commands, WAYS.values())):
            tap.point(ok, f"{name}: every command of the README's five minutes works in an empty directory",
                      text[-3000:])
            sampled = re.search(r"seconds in \d+ ticks? at 99 a second, calls were not counted\r?\n", text)
            tap.point(sampled, f"{name}: record shows the time of what it sampled", text[-6000:])
            tap.point(not left, f"{name}: and no program is left over", left)


def main():
    with Tap() as tap, Daemon() as d:
        folder = programs(tempfile.mkdtemp(prefix="profd-readme-"))
        check_report(tap, d, folder)
        check_ways(tap)
        shutil.rmtree(folder)


main()
