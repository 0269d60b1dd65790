"""The examples of profctl(1): each command ends with status 0, run in this order, and prints what the page shows."""
import os
import re
import shutil
import signal
import tempfile

from harness import BUILD, ROOT, Daemon, Tap, run

# Runs for ever as `profctl run -l service=demo` starts it, as an example expects of it.
FIB = """#include <stdlib.h>
long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { do { fib(30); } while (getenv("PROFD_LABEL_service")); return 0; }
"""
GO = "/usr/lib/go-1.19/bin"


def examples(page):
    """[command, output shown], as the page's reader types them."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        section = f.read().split("\n.Sh EXAMPLES\n", 1)[1].split("\n.Sh ", 1)[0]
    found = []
    for block in re.findall(r"^\.Bd -literal.*?\n(.*?)\n\.Ed$", section, re.S | re.M):
        for line in block.replace("\\e", "\\").splitlines():
            if line.startswith("$ "):
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


def main():
    with Tap() as tap, Daemon("--http", "127.0.0.1:0", "--http-open") as d:
        folder = tempfile.mkdtemp(prefix="profd-manual-")
        env = {**d.env, "PATH": f"{BUILD}:{os.environ['PATH']}:{GO}", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        for name, text in (("fib.c", FIB), ("Makefile", "all:\n\t./fib\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        for command, shown in examples("client/profctl.1"):
            name = f"profctl(1): {command}"
            if tool := absent(command, env):
                tap.skip(name, f"{tool} is not installed, or may not be used")
                continue
            command = command.replace("/srv/backup", folder)
            if "1a2b" in command:
                command = re.sub(r"\b1a2b\w*", build_id(d)[:12], command)
            if command.endswith("&"):  # the next commands need the process
                command = f"{command[:-1]} >run.log 2>&1 & until profctl ps --json | grep -q pid; do sleep 0.1; done"
            done = run("bash", "-c", f"set -o pipefail; {command}", cwd=folder, env=env)
            wanted = re.sub(r"1a2b\w*", build_id(d)[:12], shown) if shown else ""
            tap.point(done.returncode == 0 and wanted in done.stdout, name, done.stderr + done.stdout)
        for row in d.json("ps", "--json")["rows"]:
            os.kill(row["pid"], signal.SIGKILL)
        shutil.rmtree(folder)


main()
