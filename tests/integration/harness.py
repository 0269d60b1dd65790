# not a test
"""What the integration tests share: TAP points, a real profd on a temporary folder, profctl, hand-made gmon.out files.

    from harness import Tap, Daemon, Gmon, run
    with Tap() as tap, Daemon() as d:
        tap.point(d.ctl("builds").returncode == 0, "an empty daemon lists no builds")
"""
import atexit
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("PROFD_BUILD", "build/plain"))
PROFD, PROFCTL = os.path.join(BUILD, "profd"), os.path.join(BUILD, "profctl")
SEALED = os.path.join(ROOT, "build", "plain", "tests", "sealed.so")
NODE_MODULES = os.path.join(ROOT, "build", "browser", "node_modules")  # tests/deps.sh installs them
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
LONG = 300  # seconds: a bound for what hangs, which a slow machine does not reach
PORTS = range(20000, 32000)  # below those that the kernel gives to clients


# What a test changes by SQL has the checksums of profd: it is no damage of the file. A copy of this module in another
# folder changes no database.
if os.path.exists(SEALED):
    ctypes.CDLL(SEALED).sqlite_seal_register()


class Tap:
    """Counts points; leaving the block prints the plan and exits."""

    def __init__(self):
        self.count = self.failed = 0

    def point(self, ok, name, detail=""):
        self.count += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name}", flush=True)
        if not ok and detail != "":
            for line in str(detail).splitlines()[:30]:
                print(f"  # {line}", flush=True)
        return ok

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            import traceback
            traceback.print_exception(kind, value, trace)
            self.point(False, f"the test itself failed: {kind.__name__}: {value}")
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)


def run(*command, **options):
    """A finished command with its output as text; never hangs for ever."""
    options.setdefault("timeout", LONG)
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run([str(c) for c in command], capture_output=True, text=not options.pop("binary", False),
                          **options)


def patient(arguments):
    """Arguments of profctl: run waits for the daemon as long as a busy machine may need, unless it is told."""
    if arguments[0] != "run" or "--wait" in arguments or "--check" in arguments:
        return arguments
    return ("run", "--wait", LONG, *arguments[1:])


def free_port(taken=[]):
    """A TCP port on which nothing listens. No other test gets it while this one runs: each holds a Unix address named
    after it."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            holder = socket.socket(socket.AF_UNIX)
            try:
                holder.bind(f"\0profd-test-port-{port}")
                probe.bind(("127.0.0.1", port))
            except OSError:
                holder.close()
                continue
        taken.append(holder)
        return port


def readable_copy(program, folder):
    """A copy of a program for other users, who may not reach the clone: a home is often closed to them. The folder must
    be open to them."""
    return shutil.copy(program, os.path.join(folder, os.path.basename(program)))


def as_user(uid, act, prepare=None):
    """What act() returns in a child process of that user; prepare() runs before, as root. What act needs must be
    imported and open: the user may not be able to read the clone."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if prepare:
                prepare()
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            out = act()
        except BaseException as e:  # a child must never run the rest of the test
            out = f"failed: {e!r}"
        os.write(theirs, json.dumps(out).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as f:
        out = json.loads(f.read())
    os.waitpid(pid, 0)
    return out


class Other:
    """A child process that runs attack(say) and then waits to be killed; a child of root runs as nobody. say() sends a
    line to us. What it needs must be imported and open: it may not be able to read the clone."""

    def __init__(self, attack, prepare=None):
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours)
            try:
                if prepare:
                    prepare()
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                attack(lambda text: os.write(theirs, (text + "\n").encode()))
            except BaseException as e:  # a child must never run the rest of the test
                os.write(theirs, f"failed: {e!r}\n".encode())
            while True:
                signal.pause()
        os.close(theirs)
        self.lines = os.fdopen(ours)

    def line(self):
        return self.lines.readline().strip()

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.lines.close()


class Daemon:
    """A real profd in a temporary folder. options are added to its command line."""

    def __init__(self, *options, start=True, wrapper=()):
        self.folder = tempfile.mkdtemp(prefix="profd-test-")
        os.chmod(self.folder, 0o755)
        self.options, self.wrapper, self.process, self.program = options, list(wrapper), None, PROFD
        self.state, self.socket = os.path.join(self.folder, "db"), os.path.join(self.folder, "profd.sock")
        self.http, self.log = os.path.join(self.folder, "http.sock"), os.path.join(self.folder, "log")
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.folder, "state"), PROFD_SOCKET=self.socket,
                        PROFD_SPOOL=os.path.join(self.folder, "spool"), LC_ALL="C")
        if start:
            self.start()

    def command(self):
        return [*self.wrapper, self.program, "--state-dir", self.state, "--socket", self.socket, "--http-socket",
                self.http, *self.options]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stderr=log, stdout=log, stdin=subprocess.DEVNULL,
                                            env=self.env)
        deadline = time.monotonic() + LONG
        listening = [(socket.AF_UNIX, path) for path in (self.socket, self.http) if path in self.process.args]
        for option, value in zip(self.process.args, self.process.args[1:]):
            if option == "--http" and re.fullmatch(r"127\.0\.0\.1:[1-9][0-9]*", value):
                listening.append((socket.AF_INET, ("127.0.0.1", int(value.rpartition(":")[2]))))
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"profd ended with {self.process.returncode}: {self.logged()}")
            try:
                for family, address in listening:  # one opens after the other
                    with socket.socket(family) as s:
                        s.connect(address)
                return self
            except OSError:
                time.sleep(0.01)
        raise RuntimeError(f"profd does not listen: {self.logged()}")

    def logged(self):
        return open(self.log, errors="replace").read() if os.path.exists(self.log) else ""

    def stop(self, how=signal.SIGTERM, seconds=LONG):
        """Ends it and returns its exit status."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode if self.process else None

    def ctl(self, *arguments, **options):
        options.setdefault("env", self.env)
        with record_lock() if arguments[0] == "record" else contextlib.nullcontext():
            return run(PROFCTL, *patient(arguments), **options)

    def json(self, *arguments):
        """Output of a profctl verb as JSON."""
        done = self.ctl(*arguments)
        if done.returncode != 0:
            raise RuntimeError(f"profctl {arguments}: {done.returncode} {done.stderr}")
        return json.loads(done.stdout)

    def token(self, name, *options):
        """The text of a new token of the HTTP API."""
        done = self.ctl("token", "add", name, *(options or ("--read",)))
        if done.returncode != 0:
            raise RuntimeError(f"token add {name}: {done.returncode} {done.stderr}")
        return done.stdout.strip()

    def token_file(self, name, *options):
        path = os.path.join(self.folder, f"{name}.token")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(self.token(name, *options) + "\n")
        return path

    def get(self, target, **headers):
        """(status, headers, body) of a GET on the HTTP socket."""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(LONG)
        s.connect(self.http)
        lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in {"Host": "localhost", **headers}.items())
        s.sendall(f"GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
        s.close()
        return parse_response(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        if re.search(r"Sanitizer|runtime error:", self.logged()):
            sys.stderr.write(self.logged())
        shutil.rmtree(self.folder, ignore_errors=True)


def parse_response(data):
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    if headers.get("transfer-encoding") == "chunked":
        plain = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            n = int(size, 16)
            plain, body = plain + body[:n], body[n + 2:]
            if n == 0:
                break
        body = plain
    return int(lines[0].split()[1]), headers, body


def post(where, target, body, token=None, kind="application/octet-stream", **headers):
    """(status, headers, body) of a POST to a TCP port or to the path of a Unix socket."""
    head = {"Host": f"127.0.0.1:{where}" if isinstance(where, int) else "localhost", "Content-Type": kind,
            "Content-Length": len(body), "Connection": "close", **headers}
    if token:
        head["Authorization"] = f"Bearer {token}"
    lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in head.items())
    data = b""
    with socket.socket(socket.AF_INET if isinstance(where, int) else socket.AF_UNIX) as s:
        s.settimeout(LONG)
        s.connect(("127.0.0.1", where) if isinstance(where, int) else where)
        # Who refuses a body may answer and close while it is still being sent.
        with contextlib.suppress(ConnectionError):
            s.sendall(f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        with contextlib.suppress(ConnectionError):
            while piece := s.recv(65536):
                data += piece
    return parse_response(data)


class Gmon:
    """A hand-made gmon.out (64-bit, little-endian)."""

    def __init__(self, low, high, bins=None, rate=100, dimension=b"seconds", abbreviation=b"s"):
        self.low, self.high, self.rate = low, high, rate
        self.bins = [0] * (bins if bins is not None else (high - low) // 4)
        self.arcs, self.dimension, self.abbreviation = [], dimension, abbreviation

    def tick(self, address, ticks):
        """Adds ticks to the bin that holds the address."""
        self.bins[(address - self.low) * len(self.bins) // (self.high - self.low)] += ticks
        return self

    def arc(self, caller, callee, calls):
        self.arcs.append((caller, callee, calls))
        return self

    def data(self):
        out = bytearray(b"gmon" + struct.pack("<I12x", 1))  # which grows in place
        out += b"\0" + struct.pack("<QQII15sc", self.low, self.high, len(self.bins), self.rate, self.dimension,
                                   self.abbreviation)
        out += struct.pack(f"<{len(self.bins)}H", *self.bins)
        for caller, callee, calls in self.arcs:
            out += b"\1" + struct.pack("<QQI", caller, callee, calls)
        return bytes(out)

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.data())
        return path


def private_mounts():
    """Starts this script again where it may mount; mounts vanish with it. False: not allowed."""
    if os.environ.get("PROFD_PRIVATE_MOUNTS"):
        return True
    if os.geteuid() != 0 or run("unshare", "-m", "true").returncode != 0:
        return False
    sys.stdout.flush()
    os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], dict(os.environ, PROFD_PRIVATE_MOUNTS="1"))


def until(condition, seconds=LONG):
    """Waits for what condition gives to be true; returns it, or what it gave last. A pause is as long as the look
    before it, so that looks that start programs leave the core to what is waited for."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if (got := condition()) or (now := time.monotonic()) >= deadline:
            return got
        time.sleep(min(max(now - began, 0.02), 0.2))


def run_until(good, d, name, build, *command, **options):
    """Builds a program by gcc and runs it by profctl until good(executable, finished run) is true: a busy machine takes
    ticks from a run, which its report says. Each run has a build of its own, so that a report has one run. Returns the
    executable and the finished run, those of the last if none was good."""
    for n in range(20):
        exe = os.path.join(d.folder, f"{name}-{n}", name)
        os.makedirs(os.path.dirname(exe))
        built = run("gcc", "-Wl,--build-id=uuid", "-o", exe, *build, **options)
        assert built.returncode == 0, built.stderr
        done = d.ctl(*command[:-1], exe, *command[-1])
        if good(exe, done):
            break
    return exe, done


def symbols(executable):
    """name → (address, size) by nm; names that occur twice keep the first."""
    out = {}
    for line in run("nm", "-S", "--defined-only", executable).stdout.splitlines():
        words = line.split()
        address, size, name = int(words[0], 16), int(words[1], 16) if len(words) == 4 else 0, words[-1]
        out.setdefault(name, (address, size))
    return out


def bounds(executable):
    """low and high of a gmon.out that glibc writes for the executable."""
    s = symbols(executable)
    return s["__executable_start"][0] & ~3, (s["etext"][0] + 3) & ~3


@functools.cache
def made_once(name, make):
    """A folder that make(path) fills, which nobody changes. All tests of a run of run.sh have the same one, else all of
    a process."""
    shared = os.environ.get("PROFD_TEST_SHARED")
    if not shared:
        shared = tempfile.mkdtemp(prefix="profd-shared-")
        atexit.register(shutil.rmtree, shared, True)
    built = os.path.join(shared, name)
    with open(built + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(built):
            os.makedirs(built + ".new", exist_ok=True)
            make(built + ".new")
            os.rename(built + ".new", built)
    return built


def programs(folder):
    """tests/programs, built, copied into the folder."""
    return shutil.copytree(made_once("programs", build_programs), folder, dirs_exist_ok=True)


def build_programs(folder):
    done = run("bash", os.path.join(ROOT, "tests/programs/build.sh"), folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def profile(folder, exe, arguments, n):
    """Runs a -pg program in a folder of its own; the path of its gmon.out."""
    where = os.path.join(folder, f"{os.path.basename(exe)}-{n}")
    os.makedirs(where)
    done = run(exe, *arguments, cwd=where)
    assert done.returncode == 0, done.stderr
    return os.path.join(where, "gmon.out")


def set_ticks(gmon, exe, ticks):
    """Replaces the ticks of a gmon.out that glibc wrote, which depend on the machine: the n-th function by address that
    was called gets ticks(n), all in one bin. Returns the path."""
    with open(gmon, "rb") as f:
        data = bytearray(f.read())
    assert data[20] == 0, "the histogram comes first"
    low, high, bins = struct.unpack_from("<QQI", data, 21)
    first, arcs = 21 + 40, 21 + 40 + 2 * bins  # where bins and arcs begin
    data[first:arcs] = bytes(2 * bins)
    called = {struct.unpack_from("<QQ", data, at + 1)[1] for at in range(arcs, len(data), 21)}
    functions = sorted((a, size) for a, size in symbols(exe).values() if any(a <= pc < a + size for pc in called))
    for n, (address, size) in enumerate(functions):
        struct.pack_into("<H", data, first + 2 * ((address + size // 2 - low) * bins // (high - low)), ticks(n))
    with open(gmon, "wb") as f:
        f.write(data)
    return gmon


@contextlib.contextmanager
def perf_lock(how=fcntl.LOCK_EX, held=[]):
    """While this is held, no other suite runs perf record or profctl record, which makes the former abort where it may
    sample the whole host: see profctl-record(1)."""
    if held:
        yield
        return
    with open(os.path.join(tempfile.gettempdir(), "profd-test-perf.lock"), "w", encoding="utf-8") as f:
        fcntl.flock(f, how)
        held.append(f)
        try:
            yield
        finally:
            held.clear()


def record_lock():
    """While this is held, no other suite runs perf record."""
    return perf_lock(fcntl.LOCK_SH)
