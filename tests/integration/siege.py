"""profd under siege by local users: whatever they hold back, flood, drip or never read, memory stays bounded,
descriptors and children return, and others are served."""
import ctypes
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
import time

import harness
from harness import LONG, NOBODY, Other, Tap, until
from wire import Wire, field, header, sections, sender_number, upload, varint, zstd

# A sanitizer's own memory, several times the program's, is none of what is tested here.
MB = ((1 << 20) * (8 if b"__asan_init" in (binary := open(harness.PROFD, "rb").read()) or b"__tsan_init" in binary
                   else 1))


class Daemon(harness.Daemon):
    """One that is looked at from outside."""

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def descriptors_at_rest(self):
        """Their number when it stays for a second: a daemon that has just begun to listen still opens some."""
        seen = []
        until(lambda: seen.append(self.descriptors()) or len(seen) > 50 and len(set(seen[-50:])) == 1)
        return seen[-1]

    def family(self):
        """(pid, state) of all descendants."""
        found, out = {self.process.pid}, []
        for _ in range(3):
            for name in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{name}/stat") as f:
                        state, parent = f.read().rsplit(")", 1)[1].split()[:2]
                except OSError:
                    continue
                if int(parent) in found and int(name) not in found:
                    found.add(int(name))
                    out.append((int(name), state))
        return out

    def settled(self, tap, name, descriptors, limit):
        """Within a while: descriptors as before, two children (the brokers), no zombie, memory below the limit."""
        until(lambda: self.descriptors() <= descriptors and len(self.family()) == 2 and self.rss() < limit)
        family = self.family()
        tap.point(self.descriptors() <= descriptors and len(family) == 2 and "Z" not in [s for _, s in family]
                  and self.rss() < limit,
                  f"{name}: descriptors and children as before, {self.rss() >> 20} MB",
                  (self.descriptors(), descriptors, family, self.rss()))

    def serves(self, tap, name, patience=0):
        """Another client's upload and question are answered; for so many seconds he may be told that the daemon is
        busy."""
        deadline, answer, status = time.monotonic() + patience, None, None
        while True:
            try:
                answer, status = self.ask()
            except (BrokenPipeError, ConnectionResetError) as e: # sent away before he had said all
                answer, status = (repr(e),), None
            if answer and answer[0] == "ACK" and status == 200 or time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        tap.point(answer and answer[0] == "ACK" and status == 200, f"{name}: others are served", (answer, status))

    def ask(self):
        with Wire(self.socket) as w:
            if not w.welcome or w.welcome[0] != "WELCOME":
                return w.welcome, None
            w.send("UPLOAD", upload(sender_number(), 1), 7)
            while (answer := w.take()) and answer[0] == "WANT_OBJECT":
                pass
            return answer, answer and w.query("/api/v1/builds")[0]

    def __exit__(self, *what):
        self.stop()
        log = self.logged()
        if "Sanitizer" in log or "runtime error:" in log:
            print(log, file=sys.stderr)
        super().__exit__(*what)


def half_frames(tap, d):
    """Frames that stop one byte before their end: 400 of them, of the largest size, with all the bytes the daemon
    takes."""
    before = d.descriptors_at_rest()

    def attack(say):
        held = []
        for n in range(400):
            held.append([Wire(d.socket), (64 << 20) - 1])
        for h in held:
            h[0].raw(header("UPLOAD", 1, 64 << 20))
            h[0].socket.setblocking(False)
        piece, sent = b"x" * (1 << 20), 0
        for _ in range(3):
            for h in held:
                try:
                    while h[1]:
                        n = h[0].socket.send(piece[:h[1]])
                        h[1], sent = h[1] - n, sent + n
                except OSError:
                    pass
            time.sleep(0.2)
        say(str(sent >> 20))
        with Wire(d.socket) as w: # the same user's small frames still pass
            w.send("UPLOAD", upload(sender_number(), 1), 7)
            while (answer := w.take())[0] == "WANT_OBJECT":
                pass
            say(answer[0])

    other = Other(attack)
    sent = other.line()
    tap.point(sent.isdigit() and int(sent) > 32 and d.rss() < 400 * MB,
              f"400 half frames, {sent} MB sent: {d.rss() >> 20} MB in the daemon",
              (sent, d.rss()))
    tap.point(other.line() == "ACK", "a small upload of the same user passes by")
    d.serves(tap, "400 half frames")
    other.end()
    d.settled(tap, "400 half frames", before, 400 * MB)


def crowd(tap, d):
    """10,000 connections of one user: held, or refused in words where the descriptors do not suffice."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before, base = d.descriptors_at_rest(), d.rss()
    count = min(10000, hard - 200)

    def attack(say):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        held, told = [], b""
        for n in range(count + 300):
            try:
                w = Wire(d.socket)
            except (OSError, TypeError):
                break
            held.append(w)
            if w.welcome is None or w.welcome[0] != "WELCOME":
                told = w.welcome and w.welcome[3].get(4, b"?") or b"?"
                break
        say(f"{len(held)} {told.decode()}")

    other = Other(attack)
    held, _, told = other.line().partition(" ")
    tap.point(held.isdigit() and (int(held) >= count or told),
              f"{held} connections of one user ({told or 'none refused'})", (held, told))
    tap.point(d.rss() < 256 * MB, f"{held} connections cost {(d.rss() - base) >> 20} MB", d.rss())
    d.serves(tap, f"{held} connections")
    other.end()
    d.settled(tap, f"{held} connections", before, 256 * MB)


def unread(tap, d):
    """Questions whose answers nobody reads: 300 connections with 1,000 each."""
    before = d.descriptors_at_rest()

    def attack(say):
        held = []
        for target in ("/openapi.json", "/nowhere", "/metrics"):
            body = field(1, target)
            blob = b"".join(header("QUERY", n + 1, len(body)) + body for n in range(1000))
            for _ in range(100):
                w = Wire(d.socket)
                w.socket.setblocking(False)
                try:
                    w.socket.send(blob)
                except OSError:
                    pass
                held.append(w)
        time.sleep(1)
        say("done")

    other = Other(attack)
    tap.point(other.line() == "done" and d.rss() < 400 * MB, f"300 readers who read nothing: {d.rss() >> 20} MB",
              d.rss())
    d.serves(tap, "300 readers who read nothing")
    other.end()
    d.settled(tap, "300 readers who read nothing", before, 400 * MB)


def bombs(tap, d):
    """Uploads of a few kilobytes that unpack to half a gigabyte each: the others take turns with them, one by one."""
    if os.getuid() != 0:
        return tap.skip("uploads that unpack to half a gigabyte each", "needs root to be two users")
    total = 512 << 20
    packed = struct.pack("<IBQ", 0xFD2FB528, 0xE4, total) # zstd: blocks that say "128 KiB of zeros"
    for n in range(total >> 17):
        packed += struct.pack("<I", 1 << 20 | 2 | (n + 1 == total >> 17))[:3] + b"\0"
    packed += b"\0" * 4  # where the checksum is
    body = (field(1, b"attacker-uid") + field(2, 1) + field(6, field(1, "ab" * 20))
            + field(8, b"\1" + varint(total) + bytes(6) + varint(total) + varint(len(packed)) + varint(0)
                    + varint(len(zstd(b""))) + packed + zstd(b"")) + field(11, "ab" * 16))

    def attack(say):
        held = [Wire(d.socket, timeout=None) for _ in range(3)]
        for n in range(2):
            for w in held:
                w.send("UPLOAD", body, n + 1)
        say("sent")
        answers = [w.take() for w in held]
        say(answers[0][3].get(4, b"").decode())

    def refused():
        with Wire(d.socket) as w:
            text = w.query("/metrics")[1].decode()
        return sum(int(line.split()[-1]) for line in text.splitlines() if line.startswith("profd_uploads_total")
                   and 'result="rejected"' in line)

    before, other = refused(), Other(attack)
    sent = other.line()
    with Wire(d.socket) as w:
        w.send("UPLOAD", upload(sender_number(), 1), 7)
        while (answer := w.take())[0] == "WANT_OBJECT":
            pass
    done = refused() - before
    tap.point(sent == "sent" and answer[0] == "ACK" and done < 6,
              f"6 uploads that unpack to 512 MB each: an ACK after {done} of them", (sent, answer, done))
    told = other.line()
    tap.point("536870" in told and d.rss() < 1200 * MB, "each is refused in words", (told, d.rss()))
    other.end()
    until(lambda: refused() - before >= 6)


def drips(tap, d):
    """A byte now and then, for ever: before HELLO, in a header, in a body. Each is cut off in words while still
    dripping."""
    kinds = {"HELLO": lambda w: w.raw(header("HELLO", 1, 4000)), "a header": lambda w: w.raw(b"\x40\0"),
             "a body": lambda w: w.raw(header("UPLOAD", 9, 600000))}
    held = []
    for name, begin in kinds.items():
        for _ in range(20):
            w = Wire(d.socket, hello=name != "HELLO")
            begin(w)
            held.append((name, w))
    cut, deadline = {}, time.monotonic() + LONG
    while len(cut) < len(held) and time.monotonic() < deadline:
        time.sleep(0.3)
        for n, (name, w) in enumerate(held):
            if n in cut:
                continue
            try:
                w.socket.settimeout(0.001)
                answer = w.take()
                cut[n] = answer
            except (socket.timeout, BlockingIOError):
                try:
                    w.raw(b"\0")
                except OSError: # it was cut off just now
                    cut[n] = w.take()
            except OSError:
                cut[n] = None
    for name in kinds:
        answers = [cut.get(n, "never") for n, (k, _) in enumerate(held) if k == name]
        told = [a for a in answers if a not in (None, "never") and a[0] == "NACK" and a[3].get(1) == 22]
        tap.point("never" not in answers and len(told) >= 15,
                  f"dripping {name}: all 20 cut off, {len(told)} with the reason", answers[:3])
    for _, w in held:
        w.close()


def noise(tap, d):
    """20,000 bad frames: the log stays short and no byte of theirs reaches a terminal."""
    lines = len(d.logged().splitlines())
    sent = 0
    while sent < 20000:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(d.socket)
            try:
                s.sendall(b"\x1b]0;owned\x07\n" + os.urandom(8))
                sent += 1
            except OSError:  # earlier ones are all connections that this user may have: it was closed at once
                time.sleep(0.01)

    def say():
        """False: the noise still has all connections of this user, so that a new one is told to come again."""
        try:
            with Wire(d.socket) as w:
                w.send("NACK", field(1, 1) + field(4, "\x1b[2J\nprofd: all is well"), 0)
                w.send("DECLINE", field(1, "ab") + field(2, "\x1b]52;c;x\x07"), 0)
                return w.query("/healthz")
        except (OSError, TypeError, RuntimeError):
            return False

    assert until(say)
    log = d.logged()
    more = len(log.splitlines()) - lines
    tap.point(more < 200 and not any(c < " " and c != "\n" for c in log) and "\nprofd: all is well" not in log,
              f"20,000 bad connections: {more} lines of log, no control character", log[-600:])


def descriptors(tap, d):
    """Descriptors nobody announced, of every kind, by the hundred."""
    before = d.descriptors_at_rest()
    r, w = os.pipe()
    files = [os.open(p, os.O_RDONLY) for p in ("/", "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/self/maps",
                                               "/bin/true")]
    files += [r, w, os.memfd_create("m"), socket.socket(socket.AF_UNIX).detach(), os.open("/bin/true", os.O_PATH)]
    said = []
    for n in range(300):
        with Wire(d.socket) as c:
            if n % 3 == 0: # with a frame that takes none
                c.send("SYNC", b"", 1, fds=files * 10)
            elif n % 3 == 1: # more than its frame announces
                import array
                c.socket.sendmsg([header("OBJECT", 2, 2, 1 << 8) + field(1, "")],
                                 [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files * 2))])
            else: # announced, never sent
                c.raw(header("OBJECT", 3, 2, 1 << 8) + field(1, ""))
            said.append(c.take())
            ended = c.ended()
            if not ended or not said[-1] or said[-1][0] != "NACK":
                tap.point(False, f"descriptors, case {n % 3}", said[-1])
    for n, fd in enumerate(files):
        with Wire(d.socket) as c:
            c.send("OBJECT", field(1, "") + field(2, f"odd-{n}"), 5, fds=[fd])
            answer = c.take()
            good = (answer and (answer[0] == "ACK") == (n == 5)
                    and (answer[0] == "ACK" or len(answer[3].get(4, b"")) > 10))
            tap.point(good, f"a descriptor of kind {n} as executable: {'taken' if n == 5 else 'refused in words'}",
                      answer)
    d.settled(tap, "3,000 stray descriptors", before, 400 * MB)
    for fd in files:
        os.close(fd)


def heavy_counts(base, n=1 << 20):
    """n different arcs among as many callers and callees, in a few hundred kilobytes."""
    chunks = n // 4096

    def ends(first):
        return (varint(n) + varint(1) + varint(n) + varint(1) + varint(first) # all of build 0
                + b"\1\0" + b"\1" * 4095 + (b"\1" + b"\1" * 4096) * (chunks - 1))

    def numbers(at):
        width = 2 if at + 4095 < 1 << 16 else 3
        planes = [bytes(range(256)) * 16, b"".join(bytes([(at >> 8) + i & 255]) * 256 for i in range(16)),
                  bytes([at >> 16]) * 4096]
        return bytes([width]) + b"".join(planes[:width])

    arcs = (ends(base) + b"\1\0" + b"\2" * 4095 + (b"\1" + b"\2" * 4096) * (chunks - 1)
            + ends(base + 5) + b"".join(numbers(at) for at in range(0, n, 4096))
            + (b"\1" + b"\1" * 4096) * chunks)
    return sections((n, 0, 0, 0, 0), [arcs, b""])


def heavy_questions(tap):
    """80 reports that take seconds each, of a user about his own uploads: others get their answers, memory is bounded,
    and SIGTERM does not wait for the reports."""
    if os.getuid() != 0:
        return tap.skip("heavy questions", "needs root to be two users")

    def attack(say):
        first = Wire(d.socket, timeout=None)
        for n in range(1, 7):
            first.send("UPLOAD", field(1, b"heavy-sender") + field(2, n) + field(6, field(1, "cd" * 20))
                       + field(8, heavy_counts(n << 24)) +
                       field(11, "ab" * 16), n)
            while (answer := first.take())[0] == "WANT_OBJECT":
                pass
        held = [Wire(d.socket, timeout=None) for _ in range(4)]
        for tag in range(20):
            for n, w in enumerate(held):
                w.send("QUERY", field(1, f"/api/v1/builds/{'cd' * 20}/report?limit=1&since=now-{tag * 4 + n + 1}h"),
                       tag + 1)
        say(answer[0])
        for tag in range(20):
            for w in held:
                say(str(w.take()[3].get(1)))

    with Daemon() as d:
        other = Other(attack)
        accepted, first = other.line(), other.line() # they are being answered, slowly
        d.serves(tap, "heavy questions")
        with Wire(d.socket) as w:
            status = w.query("/api/v1/builds")[0]
        tap.point(accepted == "ACK" and first in ("200", "422") and status == 200 and d.rss() < 1500 * MB,
                  f"80 heavy questions of one user: {d.rss() >> 20} MB", (accepted, first, status, d.rss()))
        tap.point(d.stop() == 0, "SIGTERM does not wait for reports: exit 0", d.logged()[-500:])
        other.end()


def fuse_serve(fd):
    """A file system of one file, which answers everything but FLUSH: close() waits for ever."""
    def attributes(inode, mode):
        return struct.pack("<QQQQQQIIIIIIIIII", inode, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, NOBODY, NOBODY, 0, 4096, 0)
    while True:
        request = os.read(fd, 1 << 17)
        op, unique, node = struct.unpack_from("<4xIQQ", request)
        out, error = b"", 0
        if op == 26: # INIT
            out = struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 0, 0, 1 << 16, 1, 0, 0, 0) + bytes(28)
        elif op == 1: # LOOKUP
            out = struct.pack("<QQQQII", 2, 1, 60, 60, 0, 0) + attributes(2, 0o100644)
        elif op == 3: # GETATTR
            out = struct.pack("<QII", 60, 0, 0) + attributes(node, 0o40755 if node == 1 else 0o100644)
        elif op in (14, 27): # OPEN, OPENDIR
            out = struct.pack("<QII", 1, 0, 0)
        elif op in (2, 25, 36, 42): # FORGET and INTERRUPT want no answer; FLUSH gets none
            continue
        else:
            error = -38
        os.write(fd, struct.pack("<IiQ", 16 + len(out), error, unique) + out)


def never_closing(tap):
    """Descriptors whose close() never returns (a FUSE file system of the sender's). With root and /dev/fuse only."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder = tempfile.mkdtemp(prefix="profd-test-")
    state = {}

    def prepare(): # in a mount namespace of its own: nothing is left behind
        fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fd},rootmode=40000,user_id={NOBODY},group_id={NOBODY}".encode()
        if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None) or \
                libc.mount(b"x", folder.encode(), b"fuse", 0, options):
            raise OSError(ctypes.get_errno(), "no FUSE here")
        state["server"] = os.fork() # who dies before it would wait for his own close()
        if not state["server"]:
            signal.alarm(3 * LONG)
            fuse_serve(fd)
        os.close(fd)

    def attack(say):
        file = os.open(folder + "/f", os.O_RDONLY)
        say(f"open {state['server']}")
        state["go"] = Wire(d.socket)
        state["go"].send("OBJECT", field(1, "") + field(2, "/bin/x"), 1, fds=[file])
        answer = state["go"].take()
        say(f"{answer[0]} {answer[3].get(4, b'').decode()}")
        taken = 0
        try:
            while taken < 400: # unannounced ones, too; the user's connections wait when 256 hang
                with Wire(d.socket, timeout=5) as w:
                    w.send("SYNC", b"", 2, fds=[file])
                    w.take()
                taken += 1
        except TimeoutError:
            pass
        say(f"waits after {taken}")

    with Daemon() as d:
        before = d.descriptors_at_rest()
        other = Other(attack, prepare) if os.getuid() == 0 and os.path.exists("/dev/fuse") else None
        first = other.line() if other else "not root, or no /dev/fuse"
        if not first.startswith("open"):
            tap.skip("descriptors whose close never returns", first)
        else:
            said = other.line()
            tap.point(said.startswith("NACK") and "FUSE" in said, "an executable on FUSE is refused in words", said)
            told = other.line()
            tap.point(told.startswith("waits") and told != "waits after 400" and d.descriptors() < before + 256 + 40,
                      "descriptors whose close hangs: the user's connections wait, 256 are held",
                      (told, d.descriptors()))
            d.serves(tap, "closes that hang")
            with Wire(d.socket) as w, open("/bin/true", "rb") as f:
                w.send("OBJECT", field(1, "") + field(2, "/bin/true"), 3, fds=[f.fileno()])
                tap.point(w.take()[0] == "ACK", "another user's executable is still read")
        if first.startswith("open"):
            os.kill(int(first.split()[1]), signal.SIGKILL) # the end of its file system lets all go on
        if other:
            other.end()
        os.rmdir(folder)
        if first.startswith("open"):
            d.settled(tap, "closes that hung", before + 1, 400 * MB)
        tap.point(d.stop() == 0, "and the daemon ends with 0", d.logged()[-500:])


def main():
    with Tap() as tap:
        with Daemon() as d:
            d.serves(tap, "in peace")
            pid = d.process.pid
            for part in (half_frames, crowd, unread, bombs, drips, noise, descriptors):
                part(tap, d)
            d.serves(tap, "after all this")
            tap.point(d.process.poll() is None and d.process.pid == pid and d.stop() == 0,
                      "one process, and it ends with 0", d.logged()[-800:])
        heavy_questions(tap)
        never_closing(tap)


if __name__ == "__main__":
    main()
