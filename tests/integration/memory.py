# not a test
"""The memory that a live process counts in (proto/attach_memory.h), made by hand: what the collector never does can be
done with it, too."""
import array
import ctypes
import fcntl
import hashlib
import mmap
import os
import signal
import socket
import struct
import time

from wire import Wire, header

PAGE, WORDS = 4096, 64
SHRINK, GROW, FUTURE_WRITE, SEAL, F_ADD_SEALS = 2, 4, 16, 1, 1033
SEALS = SHRINK | GROW | FUTURE_WRITE | SEAL
HEADER = struct.Struct("<QIIQQ16s16sIIIIQ32x64Q")
CHUNK = struct.Struct("<IIQ24xII16x")
ROW = struct.Struct("<IIQQQHHIQ64s144s")
MODULES, LABELS, ARCS = 1, 3, 4
SLOTS_AT = PAGE + 4 * PAGE + PAGE # of the page with the table: header, modules, labels


class Memory:
    """One with a module, labels and a table of a page. call(n) counts n calls of one function."""

    def __init__(self, instance=None, size=1 << 20, seals=SEALS, labels=(), build_id=None, name="/bin/by-hand",
                 slots=64, flags=0):
        self.instance = instance or os.urandom(16)
        self.fd = os.memfd_create("by-hand", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | flags)
        os.ftruncate(self.fd, size)
        self.map = mmap.mmap(self.fd, size)
        if seals:
            fcntl.fcntl(self.fd, F_ADD_SEALS, seals)
        self.size, self.slots, self.used = size, slots, SLOTS_AT + PAGE
        self.words = [0] * WORDS
        self.write_header()
        self.chunk(PAGE, MODULES, 4, 1)
        raw = bytes.fromhex(build_id or hashlib.sha1(name.encode()).hexdigest())
        self.map[PAGE + 64:PAGE + 64 + 256] = ROW.pack(1, 1, 0x1000, 0x3000, 0, len(raw), len(name), 0, 0, raw,
                                                       name.encode())
        text = b"".join(f"{k}={v}".encode() + b"\0" for k, v in labels)
        self.chunk(5 * PAGE, LABELS, 1, len(text))
        self.map[5 * PAGE + 64:5 * PAGE + 64 + len(text)] = text
        self.chunk(SLOTS_AT, ARCS, 1, slots // 2, slots - slots // 2)
        self.counted = 0

    def write_header(self, **other):
        h = {"magic": 0x315454414650, "layout": 1, "machine": 62, "size": self.size, "used": self.used,
             "instance": self.instance,
             "parent": bytes(16), "pid": os.getpid(), "rate": 99, "mode": 1, "modules": 1, "start": time.time_ns(),
             **other}
        self.map[0:HEADER.size] = HEADER.pack(*h.values(), *self.words)

    def chunk(self, at, kind, pages, primary=0, second=0, magic=0x4b434650):
        self.map[at:at + 64] = CHUNK.pack(magic, kind, pages * PAGE, primary, second)

    def slot(self, i, count, key=1):
        struct.pack_into("<QQ", self.map, SLOTS_AT + 64 + 16 * i, key, count)

    def identity(self, i, source, target, from_module=1, self_module=1):
        struct.pack_into("<IIHH", self.map, SLOTS_AT + 64 + 16 * self.slots + 12 * i, source, target, from_module,
                         self_module)

    def call(self, n=1, i=0):
        """n more calls from 0x1010 to 0x1100 + 16 i."""
        if not self.counted:
            for k in range(16):
                self.identity(k, 0x10, 0x100 + 16 * k)
        at = SLOTS_AT + 64 + 16 * i
        before = struct.unpack_from("<QQ", self.map, at)[1]
        struct.pack_into("<QQ", self.map, at, 1 + i, before + n)
        self.counted += n

    def close(self):
        self.map.close()
        os.close(self.fd)


class Attached(Wire):
    """A connection that hands a memory over. answer: what came, page: the daemon's page or None."""

    def __init__(self, path, memory, fd=None, timeout=300, wait=True, body=b""):
        super().__init__(path, hello=wait, timeout=timeout)
        self.page = None
        if not wait:
            self.send("HELLO", b"\x08\x01\x10\x01", tag=0)
        self.send("ATTACH", body, tag=1, fds=[memory.fd if fd is None else fd])
        self.answer = self.listen() if wait else None

    def listen(self):
        """(type, flags, fields) of the answer to ATTACH; its descriptor becomes page."""
        data, fds = self.buffer, []
        while True:
            while len(data) >= 12 and len(data) >= 12 + struct.unpack_from("<I", data)[0]:
                length, _, kind, flags, tag = struct.unpack_from("<IBBHI", data)
                if tag == 1 and kind == 4 or tag < 2 and kind == 5:  # tag 0: the connection was refused
                    self.page = fds[0] if fds else None
                    from wire import NAMES, fields
                    self.buffer = data[12 + length:]
                    return NAMES[kind], flags, fields(data[12:12 + length])
                data = data[12 + length:]
            piece, rights, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(64))
            if not piece:
                return None
            for _, _, raw in rights:
                got = array.array("i")
                got.frombytes(raw[:len(raw) - len(raw) % 4])
                fds += list(got)
            data += piece

    def paused(self):
        return struct.unpack("<QIIII", os.pread(self.page, 24, 0))[2]

    def rate(self):
        return struct.unpack("<QIIII", os.pread(self.page, 24, 0))[3]

    def close(self):
        if self.page is not None:
            os.close(self.page)
        self.socket.close()


def refused_page(page):
    """What a process can do to the daemon's page: the names of what was possible."""
    done = []
    libc = ctypes.CDLL(None, use_errno=True)

    def attempt(name, action):
        try:
            action()
            done.append(name)
        except (OSError, PermissionError, ValueError):
            pass

    def punch():
        if libc.fallocate(page, 3, ctypes.c_long(0), ctypes.c_long(PAGE)) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")

    attempt("write", lambda: os.pwrite(page, b"x", 0))
    attempt("map", lambda: mmap.mmap(page, PAGE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
    attempt("shrink", lambda: os.ftruncate(page, 0))
    attempt("grow", lambda: os.ftruncate(page, 2 * PAGE))
    attempt("seal", lambda: fcntl.fcntl(page, F_ADD_SEALS, 8))
    attempt("punch", punch)
    attempt("open again", lambda: os.pwrite(os.open(f"/proc/self/fd/{page}", os.O_RDWR), b"x", 0))
    return done


class Counter:
    """A process of its own that counts by hand, attaches, and attaches again whenever the daemon has gone. stop()
    returns how many calls it made; it is alone in knowing."""

    def __init__(self, path, seed, uid=0, build_id=None):
        self.build_id = build_id
        ours, theirs = os.pipe()
        self.result = ours
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(ours)
                self.child(path, theirs, seed, uid)
                status = 0
            finally:
                os._exit(status)
        os.close(theirs)

    def child(self, path, result, seed, uid):
        import random
        rng, stopped, unseen = random.Random(seed), [], []
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
        signal.signal(signal.SIGUSR1, lambda *_: (unseen.append(1), stopped.append(1)))
        if uid:
            os.setresuid(uid, uid, uid)
        memory, link = Memory(name="/bin/counter", build_id=self.build_id), None
        while not stopped:
            memory.call(rng.randrange(1, 1000), rng.randrange(16))
            if link is None:
                link = self.dial(path, memory)
            elif self.gone(link):
                link = None
            time.sleep(0.001)
        os.write(result, str(memory.counted).encode())
        if link is None and not unseen: # a process that ends without ever being seen again could not be harvested
            end = time.monotonic() + 60
            while link is None and time.monotonic() < end:
                link = self.dial(path, memory)
                time.sleep(0.01)
        os.close(result)
        os._exit(0)

    @staticmethod
    def dial(path, memory):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            s.sendall(header("HELLO", 0, 4) + b"\x08\x01\x10\x01")
            s.sendmsg([header("ATTACH", 1, 0, 1 << 8)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                    array.array("i", [memory.fd]))])
            s.setblocking(False)
            return s
        except OSError:
            s.close()
            return None

    @staticmethod
    def gone(s):
        """Has the daemon closed? Descriptors that come are closed by nobody's reading them: recv drops them."""
        try:
            return s.recv(1 << 16) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def stop_unseen(self):
        """The same, while there is no daemon to see it."""
        return self.stop(signal.SIGUSR1)

    def stop(self, how=signal.SIGTERM):
        os.kill(self.pid, how)
        data = b""
        while piece := os.read(self.result, 100):
            data += piece
        os.close(self.result)
        os.waitpid(self.pid, 0)
        return int(data)
