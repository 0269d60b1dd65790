"""The examples of the pages of profctl's verbs: each command, run in the order of `profctl help`, ends with 0 and
prints what the page shows. The commands of profd(8) that copy a damaged database, and that keep and restore a
compressed backup."""
import contextlib
import os
import re
import shutil
import signal
import tempfile

from harness import BUILD, ROOT, Daemon, Tap, perf_lock, record_lock, run, until

# Runs for ever as `profctl run -l service=demo` starts it, as an example expects of it.
FIB = """#include <stdlib.h>
long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { do { fib(30); } while (getenv("PROFD_LABEL_service")); return 0; }
"""
GO = "/usr/lib/go-1.19/bin"


def examples(page):
    """[command, output shown] of all displays of the page that have commands, as its reader types them."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        text = f.read()
    found = []
    for block in re.findall(r"^\.Bd -literal.*?\n([$#] .*?)\n\.Ed$", text, re.S | re.M):
        for line in block.replace("\\e", "\\").splitlines():
            if line[:2] in ("$ ", "# "):
                found.append([line[2:], ""])
            else:
                found[-1][1] += f"{line}\n"
    return found


def build_id(d):
    return next(r["build_id"] for r in d.json("builds", "--json")["rows"] if r["name"].endswith("/fib"))


def absent(command, env):
    """The program of the command that this machine does not have, or may not use: perf, jq, go."""
    for tool, try_it in (("perf", "perf record -o - true >/dev/null"), ("jq", "jq --version"), ("go", "go version")):
        if re.search(rf"(^|[|&] *){tool} ", command) and run("sh", "-c", try_it, env=env).returncode != 0:
            return tool
    return None


def check_command(tap, d, env, folder, name, command, shown):
    if tool := absent(command, env):
        tap.skip(name, f"{tool} is not installed, or may not be used")
        return
    command = command.replace("/srv/backup", folder)
    if "1a2b" in command:
        command = re.sub(r"\b1a2b\w*", build_id(d)[:12], command)
    if command.endswith("&"):  # the next commands need the process
        command = f"{command[:-1]} >run.log 2>&1 & until profctl ps --json | grep -q pid; do sleep 0.1; done"
    done = run("bash", "-c", f"set -o pipefail; {command}", cwd=folder, env=env)
    wanted = re.sub(r"1a2b\w*", build_id(d)[:12], shown) if shown else ""
    tap.point(done.returncode == 0 and wanted in done.stdout, name, done.stderr + done.stdout)


def check_profctl(tap, d, env, folder):
    for name, text in (("fib.c", FIB), ("Makefile", "all:\n\t./fib\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    verbs = [v for v in re.findall(r"^  ([a-z][a-z-]*) ", run(f"{BUILD}/profctl", "help").stdout, re.M)
             if os.path.exists(os.path.join(ROOT, f"client/man/profctl-{v}.1"))]
    tap.point(len(verbs) > 25, "profctl help names the verbs that have pages", verbs)
    for verb, command, shown in ((v, *e) for v in verbs for e in examples(f"client/man/profctl-{v}.1")):
        name = f"profctl-{verb}(1): {command}"
        with (perf_lock() if "perf " in command else record_lock() if "record" in command
              else contextlib.nullcontext()):
            check_command(tap, d, env, folder, name, command, shown)
    for row in d.json("ps", "--json")["rows"]:
        os.kill(row["pid"], signal.SIGKILL)
    until(lambda: not d.json("ps", "--json")["rows"])


def check_database(tap, d, env):
    """Commands of profd(8) in its order: the copy of the damaged database replaces it, then the backup does. Those of
    "Outgrowing one machine" need a server (tier_init.py)."""
    folder = tempfile.mkdtemp(prefix="profd-manual-", dir=d.folder)
    commands = [command for command, _ in examples("daemon/profd.8") if not command.startswith("systemctl")]
    copying = [c for c in commands if re.search(r"sqlite3|copy\.db", c)]
    restoring = [c for c in commands if "/backup" in c]
    tap.point(len(copying) == 4 and len(restoring) == 3, "profd(8): the commands that are tried", commands)

    def attempt(lines, name):
        script = "\n".join(lines).replace("/var/lib/profd", d.state).replace("/backup", folder)
        done = run("bash", "-c", f"set -e -o pipefail; {script}", cwd=folder, env=env)
        tap.point(done.returncode == 0, name, f"{script}\n{done.stderr}{done.stdout}")

    def stored():
        return [(r["build_id"], r["name"], r["uploads"], r["calls"]) for r in d.json("builds", "--json")["rows"]]

    d.stop()  # the last counts of processes that have ended are stored
    d.start()
    before = stored()
    d.stop()
    for file in (f for f in os.listdir(d.state) if f.startswith("profd.db")):
        os.rename(os.path.join(d.state, file), os.path.join(folder, file.replace("profd.db", "profd.db.damaged-TIME")))
    attempt(copying, "profd(8): the readable part of a database is copied and restored")
    d.start()
    tap.point((after := stored()) == before != [], "and has the programs of before", f"{before}\n{after}")
    attempt(restoring[:1], "profd(8): a compressed backup")
    d.stop()
    attempt(restoring[1:], "profd(8): is restored")
    d.start()
    tap.point((after := stored()) == before, "and has the programs, too", f"{before}\n{after}")


def main():
    with Tap() as tap, Daemon("--http", "127.0.0.1:0", "--http-open") as d:
        folder = tempfile.mkdtemp(prefix="profd-manual-")
        env = {**d.env, "PATH": f"{BUILD}:{os.environ['PATH']}:{GO}", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        check_profctl(tap, d, env, folder)
        check_database(tap, d, env)
        shutil.rmtree(folder)


main()
