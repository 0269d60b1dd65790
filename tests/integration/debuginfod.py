#!/usr/bin/python3
"""profctl symbols --debuginfod: names of stripped programs and libraries from the real debuginfod server, while a
process runs; profctl annotate --debuginfod: their code, lines and sources. Servers that are absent, slow or hostile,
and files that are not what was asked for: one sentence each."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
from harness import PROFCTL, ROOT, Daemon, Tap, free_port, post, run, symbols, until  # noqa: E402
from otlp import PATH, PROTOBUF, Request  # noqa: E402

LIBRARY = "__attribute__((noinline)) static long inner(long n) { volatile long m = n; return m + 1; }\n" \
          "long shared_work(long n) { return inner(n) * 2; }\n"
PROGRAM = """#include <unistd.h>
long shared_work(long n);
__attribute__((noinline)) static long local_work(long n) { return shared_work(n) + 1; }
int main(int argc, char **argv)
{
    volatile long n = 0;
    (void)argv;
    do { n = local_work(n & 7); usleep(argc > 1 ? 1000 : 0); } while (argc > 1);
    return 0;
}
"""


def cc(*options):
    done = run("gcc", "-pg", "-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls", *options)
    assert done.returncode == 0, done.stderr


def strip(path, debug):
    """Leaves no symbols but those of the dynamic loader in path; the rest goes to the file debug."""
    assert run("objcopy", "--only-keep-debug", path, debug).returncode == 0
    assert run("strip", path).returncode == 0


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path).stdout).group(1)


def build(folder):
    """Stripped program and library; their debug files are below debug/."""
    debug = os.path.join(folder, "debug")
    os.mkdir(debug)
    for name, text in (("lib.c", LIBRARY), ("p.c", PROGRAM)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    library, exe = os.path.join(folder, "libshared.so"), os.path.join(folder, "p")
    cc("-shared", "-fPIC", "-o", library, os.path.join(folder, "lib.c"))
    cc("-o", exe, os.path.join(folder, "p.c"), library, f"-Wl,-rpath,{folder}")
    for path in (library, exe):
        strip(path, os.path.join(debug, os.path.basename(path) + ".debug"))
    return exe, library, debug


def environment(d, cache):
    env = {k: v for k, v in d.env.items() if not k.lower().endswith("_proxy") and not k.startswith("DEBUGINFOD")}
    return dict(env, DEBUGINFOD_CACHE_PATH=os.path.join(d.folder, cache))


class Server:
    """The real server on a private folder."""

    def __init__(self, d, *folders):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = open(os.path.join(d.folder, "debuginfod.log"), "wb")
        env = dict(environment(d, "server-cache"), TMPDIR=d.folder)
        self.process = subprocess.Popen(["debuginfod", "-p", str(self.port), "-d", os.path.join(d.folder, "di.sqlite"),
                                         "-F", *folders], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                        env=env)

    def has(self, build_id):
        done = run("curl", "-s", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}",
                   f"{self.url}/buildid/{build_id}/debuginfo")
        return done.stdout == "200"

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


NOT_THERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Fake:
    """Answers each request with these bytes; more(connection) goes on."""

    def __init__(self, answer, more=None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.answer, self.more = answer, more
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.reply, args=(connection,), daemon=True).start()

    def reply(self, connection):
        with connection:
            try:
                data = b""
                while b"\r\n\r\n" not in data and (piece := connection.recv(65536)):
                    data += piece
                answer, more = self.choose(data)
                connection.sendall(answer)
                if more:
                    more(connection)
            except OSError:
                pass

    def choose(self, _):
        return self.answer, self.more

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Routed(Fake):
    """Answers by what is asked for, such as "source"; counts the requests."""

    def __init__(self, answers):
        self.answers, self.asked = answers, {}
        super().__init__(b"")

    def choose(self, request):
        kind = request.split(b" ")[1].split(b"/")[3].decode() if request else ""
        self.asked[kind] = self.asked.get(kind, 0) + 1
        return self.answers.get(kind, (NOT_THERE, None))


def file_of(data):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(data) + data


def wait_for_end(connection):
    while connection.recv(4096):
        pass


def drip(connection):
    end = threading.Event()
    while not end.wait(0.2):
        connection.sendall(b"x")


def names(d, exe):
    done = d.ctl("report", exe, "--json")
    return {f["name"] for f in json.loads(done.stdout)["functions"]} if done.returncode == 0 else set()


def test_names(tap, d, exe, library, server):
    process = subprocess.Popen([*run_command(d), exe, "forever"], env=d.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: d.ctl("report", exe).returncode == 0 and "main" not in names(d, exe))
        missing = d.ctl("symbols", "--debuginfod", env=environment(d, "c0"))
        tap.point(missing.returncode == 64 and "there is no debuginfod server" in missing.stderr,
                  "no server is named: nothing is asked for", missing)
        env = dict(environment(d, "c1"), DEBUGINFOD_URLS=server.url)
        done = d.ctl("symbols", "--debuginfod", build_id(exe), env=env)
        tap.point(done.returncode == 0 and build_id(exe)[:12] in done.stdout and done.stderr == "",
                  "names of a stripped program are fetched, by build-id and DEBUGINFOD_URLS", done)
        tap.point(until(lambda: {"main", "local_work"} <= names(d, exe)) and process.poll() is None,
                  "reports have them while the process runs", names(d, exe))
        with open(os.path.join(ROOT, "systemd", "profd-symbols.service"), encoding="utf-8") as f:
            command = re.search(r"^ExecStart=/usr/bin/profctl (.*)", f.read(), re.M)[1].split()
        drop = ("setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
        done = run(*drop, PROFCTL, *command, env=dict(environment(d, "c2"), DEBUGINFOD_URLS=server.url))
        tap.point(done.returncode == 0 and build_id(library)[:12] in done.stdout
                  and "has no debug file of build" in done.stderr,
                  "profd-symbols.service fetches those of all other stripped builds that the server has", done)
        tap.point(until(lambda: "inner" in names(d, exe)), "a library's own functions have names then", names(d, exe))
        done = d.ctl("symbols", library)
        tap.point(done.returncode == 0 and "inner" in names(d, exe),
                  "the stripped library, sent later, takes none of them away", done)
    finally:
        process.terminate()
        process.wait()


def test_otlp(tap, exe, server):
    """Native frames that came by OTLP have a build-id and addresses, and no names."""
    low, size = symbols(os.path.join(os.path.dirname(exe), "debug", "p.debug"))["local_work"]
    r = Request()
    frames = [r.frame(kind="native", mapping=r.mapping("p", build_id(exe)), address=low + size // 2)]
    r.profile({"service.name": "stripped", "process.executable.name": "p"}, [(frames, [], 7)])
    with Daemon() as other:
        status, _, said = post(other.http, PATH, r.protobuf(), kind=PROTOBUF)
        before = names(other, build_id(exe))
        tap.point(status == 200 and before and "local_work" not in before, "OTLP: native frames without names", before)
        done = other.ctl("symbols", "--debuginfod", "--url", server.url, env=environment(other, "otlp"))
        rows = other.json("report", build_id(exe), "--json")["functions"]
        tap.point(done.returncode == 0 and [(f["name"], f["self_seconds"]) for f in rows] == [("local_work", 0.35)],
                  "they get names from debuginfod, for all builds without a name", (done, rows))
        folded = other.ctl("report", build_id(exe), "-f", "folded").stdout
        tap.point(folded == "local_work 350000\n", "and so do their stacks", folded)


def run_command(d):
    return [os.path.join(os.path.dirname(d.program), "profctl"), "run"]


def test_faults(tap, d, exe, library, server, debug):
    """Each has a cache of its own, because libdebuginfod remembers answers."""
    wrong = os.path.join(debug, "libshared.so.debug")
    with open(wrong, "rb") as f:
        other = f.read()
    with open(os.path.join(debug, "p.debug"), "rb") as f:
        mine = f.read()
    at = int.from_bytes(mine[40:48], "little")  # section headers
    cases = {
        "a server that is absent": (None, 69, r"cannot fetch the debug file"),
        "one that does not have it": (Fake(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), 66,
                                      "has no debug file of build"),
        "one that never answers": (Fake(b"", wait_for_end), 75, "did not arrive within 2 s"),
        "one that never ends": (Fake(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", drip), 75,
                                "did not arrive within 2 s"),
        "one that sends too much": (Fake(b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n" + b"x" * 4096,
                                         wait_for_end), 65, "has more than 512 MiB"),
        "the file of another build": (Fake(file_of(other)), 65, f"of build {build_id(library)[:12]} for build"),
        "no ELF": (Fake(file_of(b"<html>moved</html>" * 100)), 65, "ELF"),
        "a cut file": (Fake(file_of(mine[:at // 2])), 65, "ELF|section|file"),
        "hostile section headers": (Fake(file_of(mine[:at] + b"\xff" * (len(mine) - at))), 65, "ELF|section|file"),
    }
    for number, (name, (fake, status, sentence)) in enumerate(cases.items()):
        url = fake.url if fake else f"http://127.0.0.1:{free_port()}"
        env = environment(d, f"fault{number}")
        done = d.ctl("symbols", "--debuginfod", "--url", url, "--timeout", "2", build_id(exe), env=env)
        tap.point(done.returncode == status and re.search(sentence, done.stderr) and done.stderr.count("\n") == 1
                  and done.stdout == "", f"{name}: {sentence}", done)
        if status == 65 and fake and fake.more is None:
            done = d.ctl("symbols", "--debuginfod", "--url", server.url, build_id(exe), env=env)
            tap.point(done.returncode == 0, f"{name}: it is not kept, and a good server helps", done)
        if fake:
            fake.stop()


ANNOTATED = """static volatile long n;
__attribute__((noinline)) long busy(long k)
{
    for (long i = 0; i < k; i++)
        n += i;
    return n;
}
"""


def annotated(d, elsewhere):
    """A stripped program with ticks. Its source and what was stripped off it lie below elsewhere. debuginfod 0.188 does
    not know the first file of a unit of clang, but those that it includes."""
    source, exe = os.path.join(elsewhere, "src", "a.c"), os.path.join(d.folder, "a")
    os.makedirs(os.path.dirname(source))
    with open(os.path.join(elsewhere, "src", "busy.h"), "w") as f:
        f.write(ANNOTATED)
    with open(source, "w") as f:
        f.write('#include "busy.h"\nint main(void) { return busy(40000000) == 1; }\n')
    done = run("clang", "-pg", "-O1", "-gdwarf-5", "-Wl,--build-id", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    assert d.ctl("run", "--rate", "250", "--", exe).returncode == 0
    until(lambda: d.ctl("report", exe).returncode == 0)
    shutil.copy(exe, os.path.join(elsewhere, "whole"))
    assert run("strip", "-g", exe).returncode == 0
    return exe


def test_annotate(tap, d, elsewhere, server, exe):
    """In a mount namespace without the sources."""
    if os.geteuid() != 0 or run("unshare", "-m", "true").returncode != 0:
        return tap.skip("annotate --debuginfod", "mounts are not allowed here")

    def annotate(cache, *options):
        done = run("unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$1" && shift && exec "$@"', "sh",
                   elsewhere, os.path.join(os.path.dirname(d.program), "profctl"), "annotate", *options, "--json",
                   env=dict(environment(d, cache), TMPDIR=d.folder))
        return done, {r["line"]: r for r in json.loads(done.stdout)["rows"]} if done.returncode == 0 else {}

    done, rows = annotate("a0", exe, "busy")
    tap.point(done.returncode == 0 and not any(r["source"] for r in rows.values()),
              "annotate without --debuginfod asks nobody", done)
    done, rows = annotate("a1", exe, "busy", "--debuginfod", "--url", server.url)
    tap.point(done.returncode == 0 and (rows.get(5, {}).get("source") or "").strip() == "n += i;"
              and json.loads(done.stdout)["ticks"] > 0,
              "annotate --debuginfod: lines and source of a stripped program", done)
    name, gone = os.path.basename(exe), exe + ".gone"
    os.rename(exe, gone)
    done, rows = annotate("a2", name, "busy", "--debuginfod", "--url", server.url)
    tap.point(done.returncode == 0 and rows.get(5, {}).get("source"), "and the executable itself", done)
    tap.point(not [f for f in os.listdir(d.folder) if f.startswith("profctl-")], "no temporary file is left")
    with open(os.path.join(elsewhere, "src", "busy.h"), "a") as f:
        f.write("/* changed */\n")
    done, rows = annotate("a3", name, "busy", "--debuginfod", "--url", server.url)
    tap.point(done.returncode == 0 and rows and not any(r["source"] for r in rows.values()),
              "a source with another MD5 is not shown", done)
    done, _ = annotate("a4", name, "busy", "--debuginfod", "--url", f"http://127.0.0.1:{free_port()}")
    tap.point(done.returncode == 69 and "cannot fetch the executable of build" in done.stderr,
              "a server that is absent", done)
    done, _ = annotate("a5", name, "busy", "--url", server.url)
    tap.point(done.returncode == 64 and "are for --debuginfod" in done.stderr, "--url alone", done)


def spread(folder):
    """A program with a function of which each line is of another file, none of them here."""
    source, exe = os.path.join(folder, "spread.c"), os.path.join(folder, "spread")
    lines = "".join(f'# line 3 "/nowhere/f{i}.c"\n n += i;\n' for i in range(30))
    with open(source, "w", encoding="utf-8") as f:
        f.write("static volatile long n;\n"
                "__attribute__((noinline)) long busy(long k) { for (long i = 0; i < k; i++) {\n"
                f"{lines}}}\n return n; }}\nint main(void) {{ return busy(4000000) == 1; }}\n")
    cc("-o", exe, source)
    return exe


def again(connection):
    end = threading.Event()
    while not end.wait(0.001):
        connection.sendall(b"x" * 65536)


def test_sources(tap, d):
    """However many sources a function has, they do not take longer together than one file may."""
    exe = spread(d.folder)
    assert d.ctl("run", "--rate", "250", "--", exe).returncode == 0
    until(lambda: d.ctl("report", exe).returncode == 0)
    moved = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    late = "the source file of build [0-9a-f]+ did not arrive within [12] s"
    for number, (name, answer, sentence) in enumerate((
            ("a slow server", (b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", drip), late),
            ("one that never answers", (b"", wait_for_end), late),
            ("one that sends without an end", (b"HTTP/1.1 200 OK\r\n\r\n", again), late + "|more than 512 MiB"),
            ("one that leads to a file of this machine", (moved % b"file:///etc/passwd", None), None))):
        server = Routed({"source": answer})
        done = d.ctl("annotate", exe, "busy", "--debuginfod", "--url", server.url, "--timeout", "2", "--json",
                     env=environment(d, f"source{number}"))
        said = re.fullmatch(f"profctl: .*({sentence}).*\n", done.stderr) if sentence else True
        tap.point(done.returncode == 0 and said and not any(r["source"] for r in json.loads(done.stdout)["rows"]
                                                            if r["file"].startswith("/nowhere/")),
                  f"{name}: no source, one sentence", (server.asked, done))
        if sentence:
            tap.point(server.asked["source"] == 1, f"{name}: it is not asked again", server.asked)
        server.stop()


def inflating(path, section, older):
    """Makes a section one of 3 GiB, compressed."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    sections, count, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    texts = struct.unpack_from("<Q", data, sections + 64 * names + 24)[0]
    for at in range(sections, sections + 64 * count, 64):
        begin = texts + struct.unpack_from("<I", data, at)[0]
        if data[begin:data.index(0, begin)] == section:
            flags, _, offset = struct.unpack_from("<QQQ", data, at + 8)
            size = struct.pack(">4sQ", b"ZLIB", 3 << 30) if older else struct.pack("<IIQQ", 1, 0, 3 << 30, 1)
            struct.pack_into("<Q", data, at + 8, flags | (0 if older else 0x800))
            data[offset:offset + len(size)] = size
    with open(path, "wb") as f:
        f.write(data)


def test_bombs(tap, d, exe, whole):
    """Files of the right build that become much larger when they are read."""
    for number, older in enumerate((False, True)):
        bomb, section = os.path.join(d.folder, "bomb"), b".debug_line"
        shutil.copy(whole, bomb)
        if older:
            section = b".zdebug_line"
            assert run("objcopy", "--rename-section", ".debug_line=.zdebug_line", bomb).returncode == 0
        inflating(bomb, section, older)
        with open(bomb, "rb") as f:
            server = Routed({"debuginfo": (file_of(f.read()), None)})
        done = d.ctl("annotate", exe, "busy", "--debuginfod", "--url", server.url, "--timeout", "20",
                     env=environment(d, f"bomb{number}"))
        tap.point(done.returncode == 65 and done.stderr.count("\n") == 1
                  and "the compressed sections have more than 2048 MiB" in done.stderr,
                  f"a debug file of 3 GiB in {os.path.getsize(bomb)} bytes is refused", done)
        server.stop()


def test_usage(tap, d):
    for arguments, sentence in ((["--url", "http://127.0.0.1:1"], "no file given"),
                                (["--url", "http://127.0.0.1:1", "f"], "are for --debuginfod"),
                                (["--debuginfod", "--timeout", "0"], "is not a number of seconds"),
                                ([], "no file given"),
                                (["--debuginfod", "--url", "http://127.0.0.1:1", "nothing-here"], "nothing-here")):
        done = d.ctl("symbols", *arguments, env=environment(d, "usage"))
        tap.point(done.returncode in (64, 66) and sentence in done.stderr and done.stderr.count("\n") == 1,
                  f"symbols {' '.join(arguments)}: {sentence}", done)


with Tap() as tap, Daemon() as d:
    exe, library, debug = build(d.folder)
    if shutil.which("debuginfod") is None:
        tap.skip("names from debuginfod", "no debuginfod here")
        sys.exit(0)
    elsewhere = os.path.join(d.folder, "elsewhere")
    stripped = annotated(d, elsewhere)
    server = Server(d, debug, elsewhere)
    try:
        until(lambda: server.has(build_id(exe)) and server.has(build_id(library)))
        test_names(tap, d, exe, library, server)
        test_otlp(tap, exe, server)
        test_faults(tap, d, exe, library, server, debug)
        until(lambda: server.has(build_id(stripped)))
        test_annotate(tap, d, elsewhere, server, stripped)
    finally:
        server.stop()
    if os.path.exists(stripped + ".gone"):
        os.rename(stripped + ".gone", stripped)
    test_sources(tap, d)
    test_bombs(tap, d, stripped, os.path.join(elsewhere, "whole"))
    test_usage(tap, d)
