"""Executables that other users send: whatever a file or the process that reads it does, the store stays open."""
import ctypes
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import harness
from harness import PROFD, Tap, as_user, symbols, until
from wire import Wire, counts, field, sender_number, upload

ACCEPTED = 6, 29  # REFUSED, INTERNAL


def sent(d, fd, build_id="", name="some file"):
    """The answer to an OBJECT with this descriptor: (kind, status, sentence)."""
    with Wire(d.socket) as w:
        w.send("OBJECT", field(1, build_id) + field(2, name), 5, fds=[fd])
        kind, _, _, m = w.take()
        return kind, m.get(1), m.get(4, b"").decode()


def stores(d):
    """Does another client's upload get its ACK, and is the daemon ready?"""
    with Wire(d.socket) as w:
        w.send("UPLOAD", upload(sender_number(), 1), 7)
        while (answer := w.take()) and answer[0] == "WANT_OBJECT":
            pass
        return (answer[0], answer[3].get(4)), w.query("/readyz")[0]


OPEN = ("ACK", None), 200


def shorter_than_it_says(tap, d):
    """Files of sysfs have 4,096 bytes by fstat and a few to read. The build was asked for, and not."""
    names = ("/sys/class/net/lo/mtu", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_seqnum")
    name = next((n for n in names if os.path.exists(n) and os.stat(n).st_size > 64), None)
    if not name:
        return tap.skip("a file that is shorter than it says", "no sysfs here")
    fd = os.open(name, os.O_RDONLY)
    for build_id in ("", "ab" * 20):
        answer = sent(d, fd, build_id, name)
        tap.point(answer[0] == "NACK" and answer[1] in ACCEPTED and "shorter" in answer[2],
                  f"{name}, {'asked for' if build_id else 'unasked'}: refused in words", answer)
        state = stores(d)
        tap.point(state == OPEN, "and uploads are stored", state)
    os.close(fd)


def elf(path, text, parts=1):
    """A 64-bit ELF file with so many sections of code, each a hole of so many bytes: sparse, slow to read."""
    names = b"\0.text\0.shstrtab\0"
    at = 4096
    size = parts * text
    tables = at + size
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    for begin in range(at, tables, text):
        sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, begin, begin, text, 0, 0, 16, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, tables, len(names), 0, 0, 1, 0)
    where = tables + 64
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, at, 64, where, 0, 64, 56, 1, 64,
                                                     parts + 2, parts + 1)
    head += struct.pack("<IIQQQQQQ", 1, 5, at, at, at, size, size, 4096)
    with open(path, "wb") as f:
        f.write(head)
        f.seek(tables)
        f.write(names)
        f.seek(where)
        f.write(sections)
    return path


def children(parent):
    """(pid, name) of the children of a process."""
    out = []
    for path in glob.glob(f"/proc/{parent}/task/*/children"):
        try:
            with open(path) as f:
                pids = f.read().split()
        except OSError:
            continue
        for pid in pids:
            try:
                with open(f"/proc/{pid}/comm") as f:
                    out.append((int(pid), f.read().rstrip("\n")))
            except OSError:
                pass
    return out


def readers(d):
    """Processes of the daemon that read an executable now."""
    return [pid for broker, _ in children(d.process.pid) for pid, name in children(broker) if name == "profd-worker"]


def freeze(pid):
    """Stops a process; False: it has ended before that."""
    try:
        os.kill(pid, signal.SIGSTOP)
        with open(f"/proc/{pid}/stat") as f:
            return until(lambda: f.seek(0) or f.read().rsplit(")", 1)[1].split()[0] in "TXZ") and (
                f.seek(0) or f.read().rsplit(")", 1)[1].split()[0] == "T")
    except OSError:
        return False


def stopped_in(pid, size):
    """Stops a process that has read between 1/20 and 19/20 of so many bytes; False: it had read less, or has ended."""
    try:
        if freeze(pid):
            with open(f"/proc/{pid}/io") as f:
                if size < 20 * int(f.readline().split()[1]) < 19 * size:
                    return True
            os.kill(pid, signal.SIGCONT)
    except OSError:
        pass
    return False


def truncated_while_read(tap, d):
    """Cut off while a process that has read some of its sections is stopped, until one reading could be stopped there.
    A file that was read whole is another build than the one that was asked for."""
    said = []
    for n in range(50):
        path = elf(os.path.join(d.folder, "cut"), 10 << 20, 20)
        fd, answer = os.open(path, os.O_RDONLY), []
        thread = threading.Thread(target=lambda: answer.append(sent(d, fd, "cd" * 19 + f"{n:02x}")))
        thread.start()
        stopped = []
        while thread.is_alive() and not stopped:
            stopped = [pid for pid in readers(d) if stopped_in(pid, 200 << 20)]
            time.sleep(0.001)
        os.truncate(path, 8192)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        thread.join()
        os.close(fd)
        said.append(answer[0] if answer else None)
        if said[-1] and "shorter" in said[-1][2]:
            break
    refused = all(a and a[0] == "NACK" and (a[1] in ACCEPTED or "but" in a[2]) for a in said)
    tap.point(said[-1] and "shorter" in said[-1][2] and refused,
              f"truncated while it is read: refused in words at try {len(said)}", said)
    state = stores(d)
    tap.point(state == OPEN, "and uploads are stored", state)


def compiled(path, build_id, name):
    """A program of one function of that name with a build-id of our choice."""
    code = f"int {name}(int i) {{ return i + 1; }}\nint main(int c, char **v) {{ (void)v; return {name}(c); }}\n"
    subprocess.run(["gcc", "-O0", "-no-pie", f"-Wl,--build-id=0x{build_id}", "-x", "c", "-o", path, "-"],
                   input=code.encode(), check=True)
    os.chmod(path, 0o755)
    return path


def mounts(libc, *steps):
    """In a mount namespace of its own: nothing is left behind."""
    if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None):
        raise OSError(ctypes.get_errno(), "unshare")
    for source, target, kind, flags, options in steps:
        if libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, options and options.encode()):
            raise OSError(ctypes.get_errno(), f"mount {target}")


def owners_on_mounts(tap, d):
    """A file of root's that nobody else can write names functions for all users, but not from a nosuid mount, where a
    disk's or an image's author says who owns what. The file system of profd itself is the system's however it is
    mounted."""
    if os.getuid() != 0:
        return tap.skip("root's files on nosuid mounts", "needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    where, beside = os.path.join(d.folder, "mnt"), tempfile.mkdtemp(dir=os.path.dirname(PROFD))
    os.makedirs(where)
    os.chmod(beside, 0o755)
    nosuid, tmpfs, bind, again = 2, "tmpfs", 0x1000, 0x1020
    cases = [("a mount of root's", ("x", where, tmpfs, 0, "mode=755"), [], True),
             ("a nosuid mount", ("x", where, tmpfs, nosuid, "mode=755"), [], False),
             ("a nosuid view of profd's own file system", (beside, where, None, bind, None),
              [("none", where, None, again | nosuid, None)], True)]
    try:
        for n, (name, first, then, trusted) in enumerate(cases):
            build_id = f"0123456789abcdef{n:024x}"

            def prepare():
                mounts(libc, first)
                compiled(os.path.join(where, "exe"), build_id, "secret_name")
                mounts(libc, *then) if then else None

            def send():
                fd = os.open(os.path.join(where, "exe"), os.O_RDONLY)
                return [*sent(d, fd, build_id, "/bin/exe"), symbols(os.path.join(where, "exe"))["secret_name"][0]]

            def ask():
                low = got[3] & ~15
                with Wire(d.socket) as w:
                    body = (field(1, struct.pack("<QI", sender_number() + 1, 7)) + field(2, 1)
                            + field(6, field(1, build_id) + field(2, "exe")))
                    w.send("UPLOAD", body + field(8, counts(9, low, low + 16, 1)) + field(10, 1)
                           + field(11, "ab" * 16), 7)
                    while w.take()[0] != "ACK":
                        pass
                    return "secret_name" in w.query(f"/api/v1/builds/{build_id}/report")[1].decode()

            got = as_user(65534, send, prepare)
            tap.point(got[0] == "ACK", f"{name}: root's executable, sent by a user, is read", got)
            if got[0] != "ACK":
                continue
            named = as_user(65534, ask), as_user(60124, ask)
            tap.point(named == (True, trusted), f"{name}: it names functions for "
                                                f"{'all users' if trusted else 'its sender only'}", named)
        log = d.logged()
        tap.point(log.count("mounted nosuid") == 1, "the log says why one does not", log[-800:])
    finally:
        shutil.rmtree(beside)


def slow_neighbours(tap, d):
    """A user's huge executable, whose reading never ends, beside another user's small one, and a third's huge one
    behind it."""
    if os.getuid() != 0:
        return tap.skip("slow executables of another user", "needs root")
    small = compiled(os.path.join(d.folder, "small"), "5a" * 20, "quick")
    answers, stopped = [], []

    def ask(who, uid, path):
        def send():
            fd = os.open(path, os.O_RDONLY)
            return sent(d, fd, "", path)[0]

        thread = threading.Thread(target=lambda: answers.append((who, as_user(uid, send))))
        thread.start()
        return thread

    for n in range(50):  # until a reading was stopped before its last word: then it does not answer
        huge = elf(os.path.join(d.folder, f"huge{n}"), (200 << 20) + n * 4096)
        answers.clear()
        slow = ask("slow", 60201, huge)
        while slow.is_alive() and not stopped:
            stopped = [pid for pid in readers(d) if freeze(pid)]
            time.sleep(0.001)
        others = [ask("slow again", 60201, huge), ask("as huge", 60202, huge)] if stopped else []
        quick = [ask(f"quick {n}", 60203 + n % 2, small) for n in range(4)]
        for thread in quick:
            thread.join()
        if stopped and "slow" not in dict(answers):
            break
        for pid in set(stopped) & set(readers(d)):
            os.kill(pid, signal.SIGKILL)
        for thread in [slow, *others]:
            thread.join()
        stopped = []
    tap.point(stopped and len(answers) == 4 and all(a[0].startswith("quick") and a[1] == "ACK" for a in answers),
              "executables of two users are read while a huge one of another user is not finished", (stopped, answers))
    tap.point(readers(d) == stopped, "no second one of that user, and none for which there is no memory beside it",
              (readers(d), stopped))
    for pid in set(stopped) & set(readers(d)):
        os.kill(pid, signal.SIGKILL)
    for thread in [slow, *others]:
        thread.join()
    tap.point(len(answers) == 7, "in the end all are answered", answers)
    state = stores(d)
    tap.point(state == OPEN, "and uploads are stored", state)


def brokers(d):
    """The daemon's processes that start those which read executables: idle now."""
    return sorted(pid for pid, name in children(d.process.pid) if name in ("profd-elf", "profd"))


def state_of(d):
    return json.loads(d.get("/readyz")[2])


def brokers_that_end(tap, d):
    """They are started again; meanwhile executables wait, and the daemon says that it is degraded."""
    before = brokers(d)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    said = until(lambda: d.logged().count("killed by signal 9; it is started again in 1 s") == 2)
    tap.point(len(before) == 2 and said, "both readers of executables are killed while idle: the log says so",
              (before, d.logged()[-400:]))
    path = compiled(os.path.join(d.folder, "after"), "ee" * 20, "after_the_end")
    fd, answer = os.open(path, os.O_RDONLY), ("NACK", 15)
    while answer[1] == 15:  # BUSY: on a slow machine
        answer = sent(d, fd, "ee" * 20)
    os.close(fd)
    tap.point(answer[0] == "ACK", "an executable that is sent then waits, and is read", answer)
    # until it has its name, a process that was started again is called "exe"
    after = until(lambda: state_of(d)["status"] == "ready" and len(found := brokers(d)) == 2 and found)
    tap.point(after and not set(after) & set(before), "both were started again", (before, after))
    for pid in after if "-" not in os.path.basename(harness.BUILD) else ():  # sanitizers need descriptors and options
        # until the executable above is read, it is open, too
        until(lambda: sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"])
        held = [os.readlink(f"/proc/{pid}/fd/{n}") for n in ("0", "1", "3")]
        environ = open(f"/proc/{pid}/environ", "rb").read().strip(b"\0")
        tap.point(sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"] and held[:2] == ["/dev/null"] * 2 and
                  held[2].startswith("socket:") and not environ, "with one socket, and no environment", (held, environ))
    seen = None
    for _ in range(5):  # the delay grows, so that even a slow machine sees it
        for pid in brokers(d):
            os.kill(pid, signal.SIGKILL)
        seen = until(lambda: "executable_readers_gone" in state_of(d) and state_of(d), 1)
        if seen:
            break
    tap.point(seen and seen["status"] == "degraded" and seen["executable_readers_gone"] in (1, 2),
              "when they end again: /readyz answers 200 and degraded", seen)
    tap.point(until(lambda: "it is started again in 2 s" in d.logged()), "after a longer delay", d.logged()[-400:])
    tap.point(until(lambda: state_of(d)["status"] == "ready"), "and ready again", state_of(d))


def main():
    with Tap() as tap, harness.Daemon() as d:
        shorter_than_it_says(tap, d)
        truncated_while_read(tap, d)
        owners_on_mounts(tap, d)
        slow_neighbours(tap, d)
        brokers_that_end(tap, d)
        tap.point(d.stop() == 0, "the daemon ends in order", d.logged()[-1000:])


main()
