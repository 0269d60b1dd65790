"""profctl record, run by root, beside processes of a user who wants what is not theirs: files that only root may read,
more memory than record may take, files of which the owner never answers."""
import ctypes
import json
import os
import platform
import signal
import struct
import subprocess
import tempfile
import threading

from harness import AS_NOBODY, PROFCTL, Daemon, Tap, perf_lock, record_lock, run, until
from record_bed import account, adds_up

LIBC = ctypes.CDLL(None, use_errno=True)

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


CODE = 0x1000  # offset of the code in a file made here, and its address
RUNS = r"""
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
int main(int n, char **arguments)
{
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(arguments[n - 1], O_RDONLY), 4096);
    if (code != MAP_FAILED) {
        ((void (*)(void))code)();
    }
    return 1;
}
"""


def elf(path, size, sections=(), stated=None, names=None):
    """A file of that size with a loop at CODE. A section: (name, type, flags, offset, size). stated: the number of
    sections that section 0 states; names: the size of the names of sections."""
    texts, rows = b"\0.shstrtab\0", []
    for name, kind, flags, offset, length in sections:
        rows.append((len(texts), kind, flags, offset, offset, length, 0, 0, 1, 0))
        texts += name.encode() + b"\0"
    rows.insert(0, (0, 0, 0, 0, 0, stated or 0, 0, 0, 0, 0))
    rows.append((1, 3, 0, 0, 0x200, names or len(texts), 0, 0, 1, 0))
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, CODE, 64, 0x400, 0, 64, 56, 1, 64,
                         0 if stated else len(rows), len(rows) - 1)
    load = struct.pack("<IIQQQQQQ", 1, 5, CODE, CODE, CODE, 4096, 4096, 4096)
    with open(path, "wb") as f:
        f.write((header + load).ljust(0x200, b"\0") + texts.ljust(0x200, b"\0"))
        f.write(b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows))
        f.seek(CODE)
        f.write(b"\xeb\xfe")
        f.truncate(size)


def frames(path):
    """Unwind information of many functions, each with a rule of its own."""
    common = struct.pack("<IIBBBBBBBBBBBBB", 20, 0, 1, ord("z"), ord("R"), 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90)
    common += b"\1" + bytes(24 - len(common) - 1)
    out, at = bytearray(common), len(common)
    while len(out) < 60 << 20:
        here = 0x10000 + len(out)
        begin = CODE + 4096 + (len(out) - at) // 24 * 16
        out += struct.pack("<IIiIB", 20, len(out) + 4, begin - here - 8, 16, 0) + b"\x0e"
        value = len(out) // 24
        for _ in range(3):
            out.append(value & 0x7f | 0x80)
            value >>= 7
        out += bytes([value & 0x7f]) + b"\0\0"
    elf(path, 0x10000 + len(out), [(".eh_frame", 1, 2, 0x10000, len(out))])
    with open(path, "r+b") as f:
        f.seek(0x10000)
        f.write(out)


def build_runs(folder):
    """A program that runs what is in a file."""
    source, runs = os.path.join(folder, "runs.c"), os.path.join(folder, "runs")
    with open(source, "w", encoding="utf-8") as f:
        f.write(RUNS)
    done = run("gcc", "-O1", "-fno-omit-frame-pointer", "-o", runs, source)
    assert done.returncode == 0, done.stderr
    return runs


class Silent:
    """A FUSE file system with one file, "file", which answers until it is told to be silent."""

    def __init__(self, where, data):
        self.data, self.silent, self.fd = data, False, os.open("/dev/fuse", os.O_RDWR)
        self.where = where
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"silent", where.encode(), b"fuse", 6, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        threading.Thread(target=self.serve, daemon=True).start()

    def attributes(self, node):
        mode, size = (0o40755, 0) if node == 1 else (0o100755, len(self.data))
        return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, kind, node, body):
        """Of attributes the kernel keeps nothing, of names everything."""
        if kind == 26:  # INIT
            return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, 0, 0, 0, 1 << 16, 1, 0, 0, *[0] * 8)
        if kind == 1:  # LOOKUP
            return struct.pack("<4Q2I", 2, 0, 3600, 0, 0, 0) + self.attributes(2) if body == b"file\0" else None
        if kind == 3:  # GETATTR
            return struct.pack("<Q2I", 0, 0, 0) + self.attributes(node)
        if kind in (14, 27):  # OPEN, OPENDIR
            return struct.pack("<Q2I", 1, 2, 0)
        if kind == 15:  # READ
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.data[offset:offset + size]
        return {17: bytes(80), 18: b"", 25: b""}.get(kind)  # STATFS, RELEASE, FLUSH

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 18)
            except OSError:
                return
            _, kind, unique, node = struct.unpack_from("<IIQQ", request)
            if self.silent or kind in (2, 42):  # FORGET, BATCH_FORGET
                continue
            out = self.answer(kind, node, request[40:])
            head = struct.pack("<IiQ", 16 + len(out or b""), -38 if out is None else 0, unique)
            os.write(self.fd, head + (out or b""))

    def stop(self):
        LIBC.umount2(self.where.encode(), 3)  # MNT_FORCE, MNT_DETACH: who waits gets an error
        os.close(self.fd)


def silent(tap, folder, runs):
    """The file system of a mapped file does not answer any more; also where lists of mounts do not have it."""
    path, where = os.path.join(folder, "file"), os.path.join(folder, "mounted")
    elf(path, 16384)
    os.mkdir(where)
    with open(path, "rb") as f:
        data = f.read()
    for what, command in (("maps it", [*AS_NOBODY, runs, os.path.join(where, "file")]),
                          ("has it as its root", ["unshare", "-m", "chroot", where, "/file"])):
        try:
            fs = Silent(where, data)
        except OSError as e:
            return tap.skip("a file system that does not answer", f"none can be mounted here: {e.strerror}")
        with Daemon() as d:
            theirs = subprocess.Popen(command)
            until(lambda: cpu_ticks(theirs.pid) >= 5)
            fs.silent = True
            said = sample(d, theirs.pid)
            theirs.kill()
            fs.stop()
            theirs.wait()
            a = account(said)
            tap.point(adds_up(a) and a["outside"] > 0, f"a file system that does not answer to record, of a process "
                      f"that {what}", said)
    return None


GIB = 1 << 30
BOMBS = {
    "1 GiB of code without a build-id": lambda path: elf(path, GIB + 8192, [(".text", 1, 6, CODE, GIB)]),
    "1 GiB of names of sections": lambda path: elf(path, GIB + 8192, names=GIB),
    "16 million sections": lambda path: elf(path, GIB + 8192, stated=(GIB >> 6) - 64),
    "2.6 million entries of unwind information": frames,
}


def peak(pid):
    """KiB of memory that a process had at most."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1])


def bomb(tap, what, path, runs, plain, tries):
    """Samples the host while a process runs the file, and another one. Where record gets too little of a processor, all
    samples of the other can be lost, which it says: then this is tried again. All else holds in every try."""
    with Daemon() as d:
        sampling = subprocess.Popen([PROFCTL, "record", "--verbose", "--rate", "499", "-a"], env=d.env,
                                    stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(f"/proc/{sampling.pid}/fd/8"))
        theirs = subprocess.Popen([*AS_NOBODY, runs, path])
        until(lambda: cpu_ticks(theirs.pid) >= 20)
        other = subprocess.Popen([plain])
        until(lambda: cpu_ticks(other.pid) >= 20)
        most = peak(sampling.pid)
        sampling.send_signal(signal.SIGINT)
        said = sampling.communicate()[1]
        for p in (theirs, other):
            p.kill()
            p.wait()
        a = account(said)
        tap.point(sampling.returncode == 0 and adds_up(a), f"{what}: every sample is accounted for",
                  (sampling.returncode, said))
        tap.point(most < 400 << 10, f"{what}: record stays small", most)
        if tries and a.get("lost") and '"spinning"' not in d.ctl("report", plain, "--json").stdout:
            bomb(tap, what, path, runs, plain, tries - 1)
            return
        named = until(lambda: '"spinning"' in d.ctl("report", plain, "--json").stdout)  # its symbols were read
        tap.point(named, f"{what}: others are sampled", said)


def bombs(tap, folder, runs):
    """Files that state more than they are."""
    plain = build(folder, "plain", "spinning")
    for what, make in BOMBS.items():
        path = os.path.join(folder, "bomb")
        make(path)
        bomb(tap, what, path, runs, plain, 3)
        os.unlink(path)


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            return tap.skip("record as root", "this user is not root")
        os.chmod(folder, 0o755)
        with record_lock():
            exchanged(tap, folder)
        if platform.machine() == "x86_64":
            runs = build_runs(folder)
            with perf_lock():
                bombs(tap, folder, runs)
                silent(tap, folder, runs)  # which other recorders of the whole host would meet, too


main()
