"""profctl record, run by root, beside processes of a user who wants what is not theirs: files that only root may read,
more memory than record may take, files of which the owner never answers."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

from harness import AS_NOBODY, PROFCTL, Daemon, Tap, readable_copy, run, until
from record_bed import account, adds_up

SPINS = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int NAME(void)
{
    volatile unsigned long n = 0;
    for (;;) {
        n += 1;
    }
}
int main(void) { return NAME(); }
"""


def build(folder, name, function):
    source, program = os.path.join(folder, name + ".c"), os.path.join(folder, name)
    with open(source, "w", encoding="utf-8") as f:
        f.write(SPINS)
    done = run("gcc", "-O1", f"-DNAME={function}", "-fno-omit-frame-pointer", "-o", program, source)
    assert done.returncode == 0, done.stderr
    os.unlink(source)
    return program


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return int(f.read().rpartition(")")[2].split()[11])


def sample(d, pid, ticks=30):
    """What record says of a process that runs that long under it."""
    sampling = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", "499", "-p", str(pid)], env=d.env,
                                stderr=subprocess.PIPE, text=True)
    until(lambda: cpu_ticks(sampling.pid) >= 1 or os.path.exists(f"/proc/{sampling.pid}/fd/8"))
    before = cpu_ticks(pid)
    until(lambda: cpu_ticks(pid) >= before + ticks)
    sampling.send_signal(signal.SIGINT)
    return sampling.communicate()[1]


def functions(d):
    names = set()
    for row in d.json("builds", "--all", "--json")["rows"]:
        done = d.ctl("report", row["build_id"], "--scope", "build", "--json")
        names |= {f["name"] for f in json.loads(done.stdout)["functions"]} if done.returncode == 0 else set()
    return names


def is_read(link):
    """The kernel follows a link without a file system's help when it need not write that it was read."""
    return os.lstat(link).st_atime_ns > os.lstat(link).st_mtime_ns


def exchanged(tap, folder):
    """The path of a mapped file becomes a symbolic link to a file in a directory of root's."""
    secret = os.path.join(folder, "private")
    os.mkdir(secret, 0o700)
    build(secret, "secret", "classified")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as theirs, Daemon() as d:
        os.chmod(theirs, 0o755)
        program = build(theirs, "theirs", "spinning")
        process = subprocess.Popen([*AS_NOBODY, program])
        until(lambda: os.readlink(f"/proc/{process.pid}/exe") == program)
        os.unlink(program)
        os.symlink(os.path.join(secret, "secret"), program + " (deleted)")  # which is its path in /proc/PID/maps
        until(lambda: os.readlink(program + " (deleted)") and is_read(program + " (deleted)"))
        said = sample(d, process.pid)
        process.kill()
        process.wait()
        tap.point(adds_up(account(said)), "every sample of it is accounted for", said)
        found = functions(d)
        tap.point("classified" not in found, "what it links to is not read", found)


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            return tap.skip("record as root", "this user is not root")
        os.chmod(folder, 0o755)
        exchanged(tap, folder)


main()
