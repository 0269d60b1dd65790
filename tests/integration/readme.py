"""The README shows what profctl does: its first steps work in an empty directory, and its report is what profctl prints
for such uploads, from the total to the middle of the graph, where the README breaks off."""
import concurrent.futures
import functools
import os
import random
import re
import shutil
import tempfile

from harness import BUILD, ROOT, Daemon, Tap, free_port, programs, readable_copy, run
from example_gmon import example
from look import Terminal

TICKS = [(4, 19, 14), (0, 19, 14)] + [(0, 19, 13)] * 4
DAEMON = re.compile(r"(?m)^profd .* &.*$")


def section(name):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        return f.read().split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def check_report(tap, d, folder):
    shown = section("A report").split("```\n", 2)[1]
    exe = os.path.join(folder, "cycle")
    for n, ticks in enumerate(TICKS):
        gmon = example(exe, os.path.join(folder, f"gmon.{n}"), ticks, start=0)
        assert d.ctl("upload", "-e", exe, "-l", f"host=web-{n + 1}", gmon).returncode == 0
    printed = d.ctl("report", exe, "--graph").stdout
    tap.point(len(shown.splitlines()) > 12 and printed[printed.find("Total "):].startswith(shown),
              "the report in the README is profctl's", printed)


# A user without XDG_RUNTIME_DIR, beside a daemon of the system, which nobody means: $1 is the folder of profd, $2 the
# user, and the rest the command.
BESIDE_SYSTEM = """mount -t tmpfs none /run || exit 99
"$1/profd" --state-dir "$1/system" 2>"$1/log" &
until "$1/profctl" status --socket /run/profd/profd.sock >/dev/null 2>&1 || ! kill -0 $!; do sleep 0.1; done
user=$2; shift 2
setpriv --reuid="$user" --regid="$user" --clear-groups "$@"; status=$?
kill $!; wait; exit $status"""


def in_script(shell, commands, env, folder, prefix):
    """The commands as a script without job control; the text of what it printed, and whether each succeeded. The wait
    says how the program ended."""
    script = "set -e\n" + commands.replace("&& wait $!;", "&& { wait $! || [ $? = 137 ]; };")
    done = run(*prefix, shell, "-c", script, cwd=folder, env=env)
    return done.returncode == 0, done.stderr + done.stdout


def typed(commands, env, folder, prefix):
    """The same, pasted at the prompt of a bash, which prints the status of each."""
    shown = Terminal([*prefix, "bash", "--norc", "--noprofile", "--noediting", "-i"], {**env, "PS1": "<$?>", "PS2": ""},
                     what=lambda data: b"<0>" in data, keys=f"cd {folder}\n{commands}\nexit\n".encode())
    return set(re.findall(r"<(\d+)>", shown.text)) == {"0"}, shown.text


def check_commands(way, pairs):
    """Every command of the first steps in an empty directory, by a user without XDG_RUNTIME_DIR: ok, text. The daemon
    reads the counts each second, and what only takes time is shorter: pairs is the number of pairs of processes."""
    top, port = tempfile.mkdtemp(prefix="profd-readme-empty-"), free_port()
    os.chmod(top, 0o755)
    for name in ("profd", "profctl", "libprofd-collect.so"):
        readable_copy(os.path.join(BUILD, name), top)
    empty, prefix = os.path.join(top, "empty"), []
    os.mkdir(empty)
    commands = "".join(re.findall(r"```sh\n(.*?)```", section("First steps"), re.S)).replace("7654", str(port))
    commands = commands.replace("\nsleep 1 ", "\nuntil [ -S $PROFD_SOCKET ]; do sleep 0.1; done ")
    commands = commands.replace("\nsleep 11 ",  # until its counts and the names of its functions have arrived
                                "\nuntil profctl callers ./fib fib >/dev/null 2>&1; do sleep 0.1; done ")
    commands = commands.replace("fib(44)", "fib(40)").replace("seq 60", f"seq {pairs}")
    commands = DAEMON.sub(lambda found: found[0].replace(" &", " --harvest-interval 1s &", 1)
                          + "\ntrap \"kill $!\" EXIT", commands)
    commands += f"\nprofctl builds --server http://127.0.0.1:{port} --full; echo left: $(profctl ps --pids)\n"
    if os.getuid() == 0:
        user = random.randrange(50000, 60000)
        os.chown(empty, user, user)
        prefix = ["unshare", "--mount", "sh", "-c", BESIDE_SYSTEM, "beside", top, str(user)]
        commands += "PROFD_SOCKET= profctl builds | sed 's/^/system: /'\n"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PROFD_", "XDG_"))}
    env.update(PATH=f"{top}:{os.environ['PATH']}", HOME=empty, LC_ALL="C")
    ok, text = way(commands, env, empty, prefix)
    shutil.rmtree(top)
    return ok, text


WAYS = {"bash script": functools.partial(in_script, "bash"), "sh script": functools.partial(in_script, "sh"),
        "bash at a terminal": typed}


def check_ways(tap):
    tap.point(len(DAEMON.findall(section("First steps"))) == 1, "the first steps start one daemon")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for name, (ok, text) in zip(WAYS, pool.map(check_commands, WAYS.values(), (60, 5, 5))):
            tap.point(ok, f"{name}: every command of the README's first steps works in an empty directory",
                      text[-3000:])
            sampled = re.search(r"seconds in \d+ ticks? at 99 a second, calls were not counted\r?\n", text)
            tap.point(sampled, f"{name}: record shows the time of what it sampled", text[-6000:])
            tap.point(re.search(r"left:\s*\n", text), f"{name}: and no program is left over", text[-800:])
            tap.point(re.search(r"/fib [0-9a-f]{40} ", text), f"{name}: the dashboard shows the program",
                      text[-2000:])
            tap.point(os.getuid() or re.search(r"system: No profiles stored yet", text),
                      f"{name}: and nothing went to a daemon of the system", text[-800:])


def main():
    with Tap() as tap, Daemon() as d:
        folder = programs(tempfile.mkdtemp(prefix="profd-readme-"))
        check_report(tap, d, folder)
        check_ways(tap)
        shutil.rmtree(folder)


main()
