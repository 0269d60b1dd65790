"""What profctl shows on a terminal: colours, cut names, the pager, progress, addresses; names of strangers that are
harmless in every verb; help with examples that parse; and pipes, which get the daemon's bytes as they are."""
import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import unicodedata

from formats_hostile import hostile_program
from harness import LONG, PROFCTL, ROOT, Daemon, Gmon, Tap, bounds, free_port, profile, programs, run, symbols

SGR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A command on a pseudo-terminal of its own: its output, its exit status. keys: typed when what(output) says so."""

    def __init__(self, command, env, columns=100, what=None, keys=b"", seconds=LONG):
        self.text, self.status = "", None
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        process = subprocess.Popen([str(c) for c in command], stdin=follower, stdout=follower, stderr=follower,
                                   env=env, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(follower)
        data, end, typed = b"", time.monotonic() + seconds, False
        while time.monotonic() < end:
            if select.select([leader], [], [], 0.2)[0]:
                try:
                    piece = os.read(leader, 65536)
                except OSError:
                    break
                if not piece:
                    break
                data += piece
            if what and not typed and what(data):
                os.write(leader, keys)
                typed = True
        if process.poll() is None and time.monotonic() >= end:
            process.send_signal(signal.SIGKILL)
        os.close(leader)
        self.status = process.wait()
        self.text = data.decode(errors="replace").replace("\r\n", "\n")


def terminal_env(d, **more):
    env = {k: v for k, v in d.env.items() if k not in ("NO_COLOR", "PAGER", "PROFD_PAGER", "LESS", "COLORTERM",
                                                       "DISPLAY", "WAYLAND_DISPLAY",
                                                       "LC_ALL", "LC_CTYPE")}
    return {**env, "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


def test_colour(tap, d, exe):
    plain = d.ctl("report", exe).stdout
    on = lambda *options, **env: Terminal([PROFCTL, "report", exe, "--no-pager", *options], terminal_env(d, **env),
                                          columns=1000)
    coloured = on()
    without = SGR.sub("", coloured.text)
    tap.point(coloured.status == 0 and SGR.search(coloured.text) and without == plain.replace("\f", ""),
              "on a terminal: the same text, with colours", (plain[:600], without[:600]))
    hot = [line for line in coloured.text.splitlines() if SGR.sub("", line).startswith("[")]
    tap.point(hot and all(line.startswith("\x1b[") and re.match(r"\[\d+\] +\d+\.\d+ ", SGR.sub("", line))
                          for line in hot),
              "never colour alone: each coloured entry has its percentage", hot[:3])
    used = set(SGR.findall(coloured.text))
    tap.point(not any(re.search(r"\b3[12]\b|\b9[12]\b", s.replace("38;5;32", "")) for s in used),
              "neither red nor green", used)
    tap.point("\x1b" not in on(NO_COLOR="1").text and "\x1b" not in on(TERM="dumb").text
              and "\x1b" not in on("--color", "never").text,
              "none with NO_COLOR, TERM=dumb, --color never")
    tap.point(SGR.search(on(NO_COLOR="").text) and SGR.search(on("--color=always", NO_COLOR="1").text),
              "an empty NO_COLOR is none, and --color=always wins")
    basic = on(TERM="vt100").text
    tap.point("38;5" not in basic and SGR.search(basic), "sixteen colours where there are no more")
    always = d.ctl("report", exe, "--color=always").stdout
    tap.point(SGR.sub("", always).replace("\n?\n", "\n") and SGR.sub("", always) == plain.replace("\f", ""),
              "--color=always through a pipe: colours, nothing cut")
    for form in ("text", "json", "dot", "folded", "csv", "gprof", "speedscope", "callgrind"):
        got, again = d.ctl("report", exe, "-f", form).stdout, d.ctl("report", exe, "-f", form, "--wide", "--no-pager",
                env=terminal_env(d)).stdout
        tap.point("\x1b" not in got and len(got) > 50 and (form in ("json",) or got == again),
                  f"-f {form} through a pipe: the daemon's bytes")
    status, _, body = d.get(f"/api/v1/builds/{d.json('report', exe, '--json')['build_id']}/report?format=text&limit=0")
    tap.point(status == 200 and body.decode() == plain, "which are those of its HTTP answer, byte for byte")
    bad = d.ctl("report", exe, "--color", "pink")
    tap.point(bad.returncode == 64 and "pink" in bad.stderr, "a colour that is none is named", bad)


def test_width(tap, d, exe):
    env = terminal_env(d, NO_COLOR="1")
    plain = [line for line in d.ctl("report", exe).stdout.replace("\f", "").splitlines()]
    for columns in (80, 100, 132):
        shown = Terminal([PROFCTL, "report", exe, "--no-pager", "--names", "full"], env, columns).text.splitlines()
        tables = shown[shown.index("Flat profile:"):]
        tap.point(len(shown) == len(plain) and max(map(len, tables)) <= max(columns, 49 + 24)
                  and any("…" in line for line in tables),
                  f"{columns} columns: no line of the tables is wider", max(tables, key=len))
        cut = [(a, b) for a, b in zip(shown, plain) if a != b]
        wrong = [(a, b) for a, b in cut if "…" not in a
                 or not re.fullmatch(".+".join(re.escape(part) for part in a.split("…")), b)]
        tap.point(not wrong, "a cut name keeps its end, and its beginning or its own name", wrong[:2])
        own = [(a, m.group(1)) for a, b in cut if (m := re.search(r"(\w{1,9})\([^()]*\)(?: const)?(?: \[\d+\])?$", b))]
        lost = [(a, name) for a, name in own if f"{name}(" not in a]
        tap.point(own and not lost, "a function with arguments keeps its own name", lost[:2])
        tap.point(all(a == b for a, b in zip(shown, plain) if len(b) <= columns), "what fits stays whole")
    wide = Terminal([PROFCTL, "report", exe, "--no-pager", "--wide"], env, 80).text
    tap.point("…" not in wide and wide.splitlines() == plain, "--wide cuts nothing")
    ascii_dots = Terminal([PROFCTL, "report", exe, "--no-pager"], {**env, "LANG": "C"}, 80).text
    tap.point("…" not in ascii_dots and "..." in ascii_dots, "three dots where the locale is not UTF-8")
    usual = Terminal([PROFCTL, "report", exe, "--no-pager"], env, 1000).text.splitlines()
    short = d.ctl("report", exe, "--names", "short").stdout.replace("\f", "").splitlines()
    tap.point(usual == short and short != plain and "std::allocator" not in "".join(short),
              "short names are the default on a terminal, not in a pipe")
    tap.point("…" not in Terminal([PROFCTL, "report", exe, "--no-pager"], {**env, "LANG": "C"}, 1000).text,
              "nor where the locale is not UTF-8")
    narrow = Terminal([PROFCTL, "report", exe, "--no-pager"], env, 20)
    tap.point(narrow.status == 0 and "main" in narrow.text, "twenty columns do not hurt")


def test_pager(tap, d, exe):
    seen = os.path.join(d.folder, "seen")
    keep = f"sh -c 'cat > {shlex.quote(seen)}'"
    plain = d.ctl("report", exe, "--names", "short").stdout.replace("\f", "")
    read = lambda: SGR.sub("", open(seen).read()) if os.path.exists(seen) else None
    on = lambda *options, **env: Terminal([PROFCTL, *options], terminal_env(d, **env), columns=1000)
    done = on("report", exe, PAGER=keep)
    tap.point(done.status == 0 and done.text == "" and read() == plain, "PAGER gets the report on a terminal",
              done.text[:300])
    os.unlink(seen)
    done = on("report", exe, PROFD_PAGER=keep, PAGER="false")
    tap.point(done.status == 0 and read() == plain, "PROFD_PAGER goes before PAGER")
    os.unlink(seen)
    for name, options, env in (("--no-pager", ["--no-pager"], {"PAGER": keep}),
                               ("an empty PROFD_PAGER", [], {"PROFD_PAGER": "", "PAGER": keep}),
                               ("cat", [], {"PAGER": "cat"}), ("TERM=dumb", [], {"PAGER": keep, "TERM": "dumb"})):
        done = on("report", exe, *options, **env)
        tap.point(done.status == 0 and SGR.sub("", done.text) == plain and read() is None, f"{name}: no pager",
                  done.text[:200])
    piped = d.ctl("report", exe, env=terminal_env(d, PAGER=keep))
    tap.point(piped.returncode == 0 and "Call graph" in piped.stdout and read() is None, "none into a pipe")
    done = on("report", exe, "-o", os.path.join(d.folder, "o"), PAGER=keep)
    tap.point(done.status == 0 and read() is None, "none with -o")
    done = on("report", exe, PAGER="head -c 1 >/dev/null")
    tap.point(done.status == 0 and done.text == "", "a pager that is left early is no error", done.text)
    done = on("report", exe, PAGER="exit 3")
    tap.point(done.status == 0 and done.text == "", "and its own exit status is not profctl's", done.text)
    done = on("report", "ffffffff", PAGER=keep)
    tap.point(done.status == 66 and "ffffffff" in done.text and read() is None,
              "a question that fails starts none, and keeps its status", done.text)
    done = on("report", exe, PAGER="no-such-pager-here")
    tap.point(done.status == 64 and "no-such-pager-here" in done.text and "--no-pager" in done.text,
              "a pager that is not there is named", done.text)
    if run("sh", "-c", "command -v less").returncode == 0:
        done = Terminal([PROFCTL, "report", exe], terminal_env(d), 100,
                        lambda out: b"Build" in out and b":" in out[-8:], b"q")
        tap.point(done.status == 0 and "Build" in done.text and "Call graph" not in done.text,
                  "less is the default, and q ends it", done.text[-300:])
        short = Terminal([PROFCTL, "report", exe, "--flat", "--limit", "1"], terminal_env(d))
        tap.point(short.status == 0 and "Flat profile" in short.text,
                  "what fits on the screen is shown without waiting")
    else:
        tap.skip("less is the default", "no less here")


def test_builds(tap, d, exe):
    iso, now = d.ctl("builds").stdout, Terminal([PROFCTL, "builds"], terminal_env(d)).text
    tap.point(re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", iso) and not re.search(r"\d{4}-\d\d-\d\dT", now)
              and " ago" in now and " ago" not in iso,
              "times are relative on a terminal, absolute in a pipe", (iso, now))
    tap.point(" ago" in d.ctl("builds", "--time", "relative").stdout
              and "Z" in Terminal([PROFCTL, "builds", "--time=iso"], terminal_env(d)).text,
              "--time says otherwise")
    rows = d.json("builds", "--json")["rows"]
    lines = [line.split() for line in iso.splitlines()[1:]]
    ids = [line[1] for line in lines]
    tap.point(iso.split()[:2] == ["PROGRAM", "BUILD"] and all(sum(r["build_id"].startswith(i) for r in rows) == 1
            for i in ids) and ids,
              "names before ids, which are short and mean one build", iso)
    tap.point(all(d.ctl("report", i, "--flat").returncode == 0 for i in ids), "and can be asked for")
    seen = [line[-1] for line in lines]
    tap.point(seen == sorted(seen, reverse=True), "the latest first", seen)
    for key, column in (("name", 0), ("uploads", 2), ("processes", 3), ("seconds", 4), ("calls", 5)):
        values = [line.split()[column] for line in d.ctl("builds", "--sort", key).stdout.splitlines()[1:]]
        numbers = values if key == "name" else [-float(v) for v in values]
        tap.point(numbers == sorted(numbers), f"--sort {key}", values)
    calls = [r["calls"] for r in d.json("builds", "--json", "--sort", "calls")["rows"]]
    tap.point(calls == sorted(calls, reverse=True) and len(calls) == len(rows), "--sort with --json")
    for words in (["--sort", "colour"], ["--time", "noon"]):
        bad = d.ctl("builds", *words)
        tap.point(bad.returncode == 64 and words[1] in bad.stderr, f"builds {' '.join(words)} is refused by name", bad)


def test_address(tap, d, exe):
    """What status says of the daemon's HTTP address is where the dashboard answers."""
    status = d.json("status", "--json")["store"]
    tap.point(status["http_url"] is None and status["http_token"] is False, "status without HTTP: no address", status)
    for options, asked in ((["--http-open"], False), ([], True)):
        port = free_port()
        with Daemon("--http", f"127.0.0.1:{port}", *options) as web:
            status = web.json("status", "--json")["store"]
            tap.point(status["http_url"] == f"http://127.0.0.1:{port}/" and status["http_token"] == asked,
                      f"status has the address{', and that a token is asked for' if asked else ''}", status)
            page = run("/usr/bin/python3", "-c", "import sys, urllib.request; "
                                                 "print(urllib.request.urlopen(sys.argv[1], "
                                                 "timeout=300).read().decode())", status["http_url"])
            tap.point("<html" in page.stdout, "where the dashboard answers", page.stderr)


def test_progress(tap, d, exe, gmon):
    """The clock decides whether a bar shows: what shows is one, and is gone at the end; in a pipe there is none."""
    quiet = d.ctl("upload", "-e", exe, *[gmon] * 3)
    tap.point(quiet.returncode == 0 and quiet.stderr == "", "a pipe gets no bar", quiet)
    shown = Terminal([PROFCTL, "upload", "-e", exe, *[gmon] * 4000], terminal_env(d), 80)
    pieces = shown.text.split("\r\x1b[K")
    bars = [p for p in pieces[1:-1] if p]
    tap.point(shown.status == 0 and re.fullmatch(r"4000 uploads of .* stored\n", pieces[-1])
              and pieces[0] == ("" if bars else pieces[-1]),
              "what was done stands alone at the end", shown.text[-400:])
    wrong = [b for b in bars if not re.fullmatch(r"uploading \[#*\.*\] +\d+ %  \d+ of \d+(  \d+ (s|min) left)?", b)
             or len(b) >= 80]
    tap.point(not wrong, f"{len(bars)} bars on the way were bars", wrong[:3])


def test_names(tap, d, folder):
    """A program, functions and a label chosen by a stranger, in every verb, on a terminal."""
    exe, gmon = hostile_program(folder)
    odd = os.path.join(folder, "odd\x1b]0;owned\x07\u202eexe\x9b31m")
    os.rename(exe, odd)
    label = "service=a\u202eb<script>"
    done = d.ctl("upload", "-e", odd, "-l", label, gmon)
    if done.returncode != 0:
        label = "service=a<script>"
        done = d.ctl("upload", "-e", odd, "-l", label, gmon)
    assert done.returncode == 0, done.stderr
    build = next(r["build_id"] for r in d.json("builds", "--json")["rows"] if "odd" in r["name"])
    verbs = [["builds"], ["builds", "--all", "--full"], ["builds", "--json"], ["report", build],
             ["report", build, "-f", "dot"],
             ["report", build, "-f", "folded"], ["report", build, "-f", "csv"], ["report", build, "-f", "callgrind"],
             ["report", build, "--json"],
             ["report", build, "-f", "svg"], ["top", build, "-n", "1"], ["top", build, "--json"],
             ["groups", build, "--by", "service"],
             ["groups", build, "--by", "service", "--json"], ["labels"], ["labels", "service"],
             ["labels", "service", "--json"], ["status"],
             ["status", "--json"], ["spool"], ["ps"], ["open", build], ["completion", "builds"],
             ["completion", "labels"],
             ["upload", "-e", odd, gmon], ["upload", "-e", odd, odd], ["symbols", odd], ["report", odd],
             ["report", "\x1b[31m\u202e"],
             ["export", odd, "-o", os.path.join(d.folder, "odd\x1b[0m.out")], ["frob\x1b[31m"],
             ["report", "--frob\x1b[31m"],
             ["delete", "\x1b[31m\u202e", "--yes"], ["pause", "\x1b[31m=\u202e"]]
    wrong = []
    for verb in verbs:
        for text in (Terminal([PROFCTL, *verb, *(["--no-pager"] if verb[0] == "report" else [])], terminal_env(d)).text,
                     d.ctl(*verb, env=d.env).stderr):
            left = SGR.sub("", text).replace("\x1b[H\x1b[2J", "")
            dangerous = ("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
                         "\U000e0000-\U000e007f]")
            if re.search(dangerous, left) or "\x1b[31m" in text:
                wrong.append((verb, repr(left[:300])))
    tap.point(not wrong, f"{len(verbs)} ways to see strangers' names: none obeys them", wrong[:3])
    left = Terminal([PROFCTL, "report", build, "--no-pager"], terminal_env(d)).text
    tap.point("]0;owned" in left, "they are shown, letter by letter", left[:300])
    piped = subprocess.run([PROFCTL, "gprof", "-b", odd, gmon], env=d.env, capture_output=True).stdout
    oracle = (subprocess.run(["gprof", "-b", odd, gmon], env=d.env, capture_output=True).stdout
              if shutil.which("gprof") else piped)
    shown = Terminal([PROFCTL, "gprof", "-b", odd, gmon], terminal_env(d)).text
    hidden = {hex(ord(c)) for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - {"0xa", "0x9"}
    tap.point(b"\x1b]0;t\x07" in piped and piped == oracle, "profctl gprof through a pipe: gprof's bytes", piped[:300])
    tap.point(not hidden and "\\x1b]0;t\\x07" in shown and "\\u{202e}gnp.exe" in shown,
              "on a terminal: what it would obey is escaped", (hidden, shown[:300]))
    tap.point("x? y" in shown, "and a name stays on its line", shown[:300])


def test_help(tap):
    verbs = re.findall(r"^  ([a-z][a-z-]*) ", run(PROFCTL, "help").stdout, re.M)
    for verb in verbs:
        if verb in ("help", "version", "gprof"):
            continue
        text = run(PROFCTL, verb, "--help").stdout
        text, _, page = text.partition("\nprofctl-")
        tap.point(page == f"{verb}(1) describes the verb in full.\n", f"{verb} --help names the manual page", page)
        lines = [re.split(r" {3,}", line.strip())[0] for line in text.partition("\nexamples:\n")[2].splitlines()]
        known = (set(re.findall(r"(?:^|\s)(--?[a-zA-Z][a-z-]*)",
                                text.partition("\noptions:\n")[2].partition("\nexamples:\n")[0])) | {"--"})
        wrong = []
        for line in lines:
            call = re.search(rf"profctl {verb}\b((?:'[^']*'|[^|>&)])*)", line)
            words = shlex.split(call.group(1)) if call else []
            words = words[:words.index("--")] if "--" in words else words
            words = words[:words.index("make")] if "make" in words else words
            wrong += ([line] if not call else [w for w in words if w.startswith("-") and w != "-"
                                               and w.split("=")[0] not in known])
        tap.point(lines and not wrong, f"{verb} --help has {len(lines)} examples whose options exist",
                  (wrong, text[-500:]))


def test_json(tap, d, exe, gmon):
    """--json on every verb that prints: one document."""
    calls = [["builds"], ["report", exe], ["labels"], ["labels", "host"], ["groups", exe, "--by", "host"], ["status"],
             ["ps"], ["top", exe, "-n", "1"], ["verify"], ["upload", "-e", exe, gmon], ["symbols", exe],
             ["backup", os.path.join(d.folder, "copy")],
             ["export", exe, "-o", os.path.join(d.folder, "all.out")], ["delete", exe, "--yes"]]
    for words in calls:
        done = d.ctl(*words, "--json")
        try:
            good = isinstance(json.loads(done.stdout), dict) and done.returncode == 0
        except ValueError:
            good = False
        tap.point(good, f"{' '.join(words[:1])} --json is one document", done)


def test_protocol_example(tap, d):
    """The bytes that profd-protocol(7) shows: sent as they stand there, and answered as it says."""
    page = open(os.path.join(ROOT, "proto/profd-protocol.7")).read().partition(".Sh EXAMPLES")[2]
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", page, re.S | re.M)
    asked = bytes.fromhex(blocks[0])
    welcome, reply = (bytes.fromhex(line.replace("...", "")) for line in blocks[1].splitlines())
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LONG)
        s.connect(d.socket)
        s.sendall(asked)
        frames = []
        stream = s.makefile("rb")
        while len(frames) < 2 or not frames[-1][0][6] & 1:
            head = stream.read(12)
            frames.append((head, stream.read(struct.unpack_from("<I", head)[0])))
    (first, hello), (last, rows) = frames[0], frames[-1]
    tap.point(first[4:] == welcome[4:12] and hello.startswith(welcome[12:]),
              "profd-protocol(7)'s HELLO gets its WELCOME", (first, hello))
    tap.point(last[4:] == reply[4:12] and rows.startswith(reply[12:]) and b'"rows":[' in rows,
              "and its QUERY its REPLY", (last, rows[:60]))


if __name__ == "__main__":
    with Tap() as tap, Daemon() as d:
        folder = programs(os.path.join(d.folder, "programs"))
        shapes, cycle = os.path.join(folder, "shapes"), os.path.join(folder, "cycle")
        # Times by hand: a run may be too quick for a tick.
        s, (low, high) = symbols(cycle), bounds(cycle)
        gmon = Gmon(low, high).tick(s["a"][0], 500).tick(s["b"][0], 30).tick(s["c"][0], 8).arc(s["main"][0] + 5,
                s["a"][0],
                3)
        gmon = gmon.arc(s["a"][0] + 5, s["b"][0], 7).write(os.path.join(d.folder, "g"))
        assert d.ctl("upload", "-e", cycle, gmon).returncode == 0
        assert d.ctl("upload", "-e", shapes, profile(d.folder, shapes, ["20000"], 0)).returncode == 0
        test_colour(tap, d, cycle)
        test_width(tap, d, shapes)
        test_pager(tap, d, shapes)
        test_builds(tap, d, cycle)
        test_address(tap, d, cycle)
        test_progress(tap, d, cycle, gmon)
        test_names(tap, d, d.folder)
        test_help(tap)
        test_protocol_example(tap, d)
        test_json(tap, d, cycle, gmon)
