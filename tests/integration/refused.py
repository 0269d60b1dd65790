"""What must be refused, in one sentence, with nothing stored: hostile files and messages against a real daemon. After
each attack every row of the database is what it was, and so is the list of builds."""
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import struct

import harness
from harness import PROFCTL, Gmon, Tap, bounds, run, symbols
from wire import Wire, counts, field, sections, sender_number, upload, varint, zstd

SOURCE = """static volatile int n;
__attribute__((noinline)) void leaf(int i) { n += i; }
__attribute__((noinline)) void middle(int i) { leaf(i); leaf(i); }
int main(void) { for (int i = 0; i < 100; i++) middle(i); return 0; }
"""
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Daemon(harness.Daemon):
    """One that can say what it has stored, and whose log must hold no sanitizer's report."""

    def rows(self):
        """Every row of every table, as a hash by table. Only reads, as backup programs may."""
        db = sqlite3.connect(f"file:{self.state}/profd.db?mode=ro", uri=True)
        names = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        out = {n: hashlib.sha256(repr(sorted(map(repr, db.execute(f"SELECT * FROM {n}")))).encode()).hexdigest()
               for n in names}
        db.close()
        return out

    def kept(self):
        return self.rows(), self.ctl("builds", "--json").stdout

    def changed(self, before):
        """What is not as it was; "" when nothing is."""
        rows, builds = self.kept()
        return (", ".join(n for n in rows if rows[n] != before[0].get(n))
                + ("" if builds == before[1] else f" builds: {builds}"))

    def __exit__(self, *what):
        self.stop()
        log = self.logged()
        if "Sanitizer" in log or "runtime error:" in log:
            import sys
            print(log, file=sys.stderr)
        super().__exit__(*what)


def compiled(folder, name, *flags, text=SOURCE):
    source, exe = os.path.join(folder, name + ".c"), os.path.join(folder, name)
    with open(source, "w") as f:
        f.write(text)
    done = run("gcc", "-pg", "-O0", *flags, "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe


def build_id(exe):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", exe).stdout).group(1)


def small_gmon(exe, leaf="leaf", middle="middle"):
    """A gmon.out of the executable with few bytes: 4 bins and 3 arcs, one of each kind of record boundary."""
    at = {n: a for n, (a, _) in symbols(exe).items()}
    low, high = bounds(exe)
    g = Gmon(low, high, bins=4).tick(at[leaf], 3)
    for caller, callee in (("main", middle), (middle, leaf), ("_start", "main")):
        g.arc(at[caller] + 16, at[callee], 100)
    return g


def written(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def one_sentence(done, status, *words):
    lines = done.stderr.strip().splitlines()
    return (done.returncode == status and len(lines) == 1 and lines[0].startswith("profctl: ")
            and all(w in done.stderr for w in words))


def truncated(tap, d, folder, exe):
    """Every prefix of a gmon.out in one go. Where a record ends the file cannot be told from a shorter one; everywhere
    else each file is refused by name, and none is stored."""
    data = small_gmon(exe).data()
    ends = [20, 20 + 1 + 40 + 8] + [20 + 1 + 40 + 8 + 21 * n for n in (1, 2, 3)]
    assert ends[-1] == len(data), (ends, len(data))
    cuts = [written(folder, f"cut-{n:03}", data[:n]) for n in range(len(data)) if n not in ends]
    before = d.kept()
    done = d.ctl("upload", "-e", exe, *cuts)
    lines = done.stderr.strip().splitlines()
    named = {n for n in cuts if any(n + ":" in line for line in lines)}
    tap.point(done.returncode == 65 and named == set(cuts) and len(lines) == len(cuts),
              f"all {len(cuts)} truncations are refused, each by its name",
              f"exit {done.returncode}, {len(lines)} lines, without: {sorted(set(cuts) - named)[:5]}\n"
              + "\n".join(lines[:4]))
    tap.point(all(re.search(r"\d", line.split(": ", 2)[2]) for line in lines), "each sentence holds a value", lines[:3])
    tap.point(not d.changed(before), "not one row came of it", d.changed(before))
    one = d.ctl("upload", "-e", exe, cuts[-1])
    tap.point(one_sentence(one, 65, cuts[-1]), "a single one gets a single sentence", one)


def damaged(tap, d, folder, exe):
    """Fields of a gmon.out that cannot be."""
    g = small_gmon(exe)
    data = g.data()
    before = d.kept()

    def bad(name, content, *words):
        path = written(folder, "bad-" + name.replace(" ", "-"), content)
        done = d.ctl("upload", "-e", exe, path)
        tap.point(one_sentence(done, 65, path, *words), f"{name}: one sentence with "
                                                        f"{' and '.join(words) or 'the file'}", done)

    def with_header(low=g.low, high=g.high, bins=4, rate=100):
        return data[:20] + b"\0" + struct.pack("<QQII", low, high, bins, rate) + data[20 + 25:]

    assert with_header() == data
    bad("wrong magic", b"nomg" + data[4:])
    bad("version 2", data[:4] + struct.pack("<I", 2) + data[8:], "2")
    bad("bad tag", data[:20] + b"\x07" + data[21:], "7")
    bad("bad tag later", data[:69] + b"\x2a" + data[70:], "42")
    bad("bins beyond the file", with_header(bins=5000), "10000")
    bad("2^31 bins", with_header(bins=1 << 31), "4294967296")
    bad("2^32-1 bins", with_header(bins=0xffffffff), "8589934590")
    bad("no bins but a range", with_header(bins=0))
    bad("low above high", with_header(low=g.high, high=g.low), f"{g.high:x}")
    bad("low equal to high", with_header(high=g.low), f"{g.low:x}")
    bad("a rate of 0", with_header(rate=0), "0")
    bad("another program's range", with_header(low=g.low + 0x100000, high=g.high + 0x100000), "not the executable")
    arc = lambda f, t: data[:69] + b"\1" + struct.pack("<QQI", f, t, 1) + data[90:]
    bad("an arc between strangers", arc(0x7f0000000000, 0x7f0000001000), "not the executable")
    bad("arc addresses at the top", arc(2**64 - 1, 2**64 - 1), "not the executable", "ffffffffffffffff")
    bad("big-endian", b"gmon" + struct.pack(">I12x", 1) + data[20:])
    bad("behind the last record", data + b"\0")
    tap.point(not d.changed(before), "nothing of it is stored", d.changed(before))


def odd_files(tap, d, folder, exe):
    """Files that are no files, as EXE and as gmon.out: refused at once, never waited for."""
    gmon = written(folder, "good.gmon", small_gmon(exe).data())
    fifo, link, sparse = (os.path.join(folder, n) for n in ("fifo", "loop", "sparse"))
    os.mkfifo(fifo)
    os.symlink(link, link)
    written(folder, "sparse", b"\x7fELF")
    os.truncate(sparse, 5 << 30)
    secret = written(folder, "empty", b"")
    before = d.kept()
    for path, status, word in ((fifo, 65, "regular"), (folder, 65, "regular"), ("/dev/zero", 65, "regular"),
                               ("/dev/null", 65, "regular"),
                               (link, 66, "symbolic"), (sparse, 65, "5368709120"), (secret, 65, ""),
                               ("/proc/self/mem", 65, "")):
        done = d.ctl("upload", "-e", path, gmon)
        tap.point(one_sentence(done, status, path, word), f"EXE {os.path.basename(path) or path}: refused", done)
        done = d.ctl("upload", "-e", exe, path)
        tap.point(one_sentence(done, status, path, word), f"gmon.out {os.path.basename(path) or path}: refused", done)
        done = d.ctl("symbols", path)
        tap.point(one_sentence(done, status, path, word), f"symbols of {os.path.basename(path) or path}: refused", done)
    tap.point(not d.changed(before), "nothing of it is stored", d.changed(before))


def answer_to(w, tag):
    """The ACK or NACK with the tag."""
    while True:
        answer = w.take()
        if answer is None or (answer[1] == tag and answer[0] in ("ACK", "NACK")):
            return answer


def refused_uploads(tap, d, exe):
    """Uploads no client library would send. The connection survives each."""
    name = build_id(exe)
    low, high = bounds(exe)
    before = d.kept()
    with Wire(d.socket) as w:
        def bad(title, body, status, *words):
            w.send("UPLOAD", body, 77)
            answer = answer_to(w, 77)
            said = answer and answer[0] == "NACK" and answer[3].get(4, b"").decode()
            tap.point(bool(said) and answer[3].get(1) == status and not answer[3].get(2)
                      and all(x in said for x in words),
                      f"{title}: NACK {status} with {' and '.join(words) or 'words'}", answer)

        def made(sender=None, sequence=1, builds=((name, exe),), program=0, data=None, more=b"",
                 host="0123456789abcdef" * 2):
            out = field(1, sender if sender is not None else os.urandom(12)) + field(2, sequence) + field(5, program)
            for b in builds:
                out += field(6, field(1, b[0]) + field(2, b[1]))
            return (out + field(8, data if data is not None else counts(5, low & ~3, (high + 3) & ~3)) + more
                    + field(11, host))

        bad("no bytes", b"", 6)
        bad("not protobuf", b"\xff" * 40, 1)
        bad("a sender of 11 bytes", made(sender=b"x" * 11), 6, "11")
        bad("a sender of zeros", made(sender=bytes(12)), 6, "zeros")
        bad("sequence 0", made(sequence=0), 6, "0")
        bad("no build", made(builds=()), 6, "0")
        bad("1,025 builds", made(builds=[("%040x" % n, "") for n in range(1025)]), 2, "1024", "1025")
        bad("a program beyond the builds", made(program=1), 6, "1")
        bad("one build twice", made(builds=((name, exe), (name, exe))), 6, name)
        bad("a build-id with a path", made(builds=(("../../../etc/passwd", ""),)), 6, "../../../etc/passwd")
        bad("a name of 5,000 bytes", made(builds=((name, "n" * 5000),)), 2, "5000", "4096")
        bad("a name that is not UTF-8", made(builds=((name, b"\xff\xfe"),)), 1)
        bad("a NUL in a name", made(builds=((name, b"a\0b"),)), 1)
        bad("65 labels", made(more=b"".join(field(7, field(1, f"l{n}") + field(2, "v")) for n in range(65))), 2, "64",
            "65")
        bad("20,000 labels", made(more=b"".join(field(7, field(1, f"l{n}") + field(2, "v")) for n in range(20000))), 2,
            "64", "20000")
        bad("a label name with a dash", made(more=field(7, field(1, "a-b") + field(2, "v"))), 6, "a-b")
        bad("a label twice", made(more=(field(7, field(1, "a") + field(2, "v"))) * 2), 6, "a", "twice")
        bad("a label value of 1,025 bytes", made(more=field(7, field(1, "a") + field(2, "v" * 1025))), 2, "1025",
            "1024")
        bad("a host that is none", made(host="../../etc"), 6, "../../etc")
        bad("unknown reasons", made(more=field(9, 1 << 20)), 6, "0x100000")
        bad("no counts", made(data=b""), 1)
        bad("counts of an unknown format", made(data=b"\x09" + counts(1)[1:]), 1, "9")
        bad("counts cut off", made(data=counts(5)[:-3]), 1)
        bad("counts that claim 2^62 bytes", made(data=b"\1" + varint(1 << 62) + zstd(b"x")), 2)
        bad("high below low, by overflow", made(data=counts(5, 0x2000, 0x1000 + (1 << 64))), 1, "0x2000")
        bad("low equal to high", made(data=counts(5, 0x2000, 0x2000)), 1, "0x2000")
        bad("2^31 bins", made(data=counts(5, low, high, bins=1 << 31)), 2, "2147483648")
        bad("bytes left over", made(data=sections((0, 0, 0, 0, 0), [b"\0\0\0\0rest", b""])), 1)
        bad("ticks outside the known text", made(data=counts(5, 0x7000000, 0x7001000)), 7, "0x7000000", name)
        w.send("SYNC", b"", 78)
        tap.point(answer_to(w, 78)[0] == "ACK", "after all this the connection still answers")
    tap.point(not d.changed(before), "not one row came of it", d.changed(before))


def mutated(data, rng):
    """The executable with a few bytes of its headers, or of what they point at, changed or cut off."""
    out = bytearray(data)
    shoff, = struct.unpack_from("<Q", data, 40)
    shnum, = struct.unpack_from("<H", data, 60)
    for _ in range(rng.randint(1, 6)):
        kind = rng.randrange(5)
        if kind == 0:
            at = rng.randrange(4, 64)
        elif kind == 1:
            at = rng.randrange(64, 64 + 56 * 13)
        elif kind == 2 and shoff + 64 * shnum <= len(out):
            at = shoff + rng.randrange(64 * shnum)
        else:
            at = rng.randrange(len(out))
        value = rng.choice((0, 0xff, 0x7f, 0x80, rng.randrange(256)))
        width = rng.choice((1, 1, 4, 8))
        out[at:at + width] = bytes([value]) * len(out[at:at + width])
    if rng.randrange(10) == 0:
        del out[rng.randrange(len(out)):]
    return bytes(out)


def hostile_elf(tap, d, folder, exe):
    """300 mutated executables by descriptor, as a liar sends them; 60 through profctl."""
    seed = int(os.environ.get("SEED", "1"))
    rng = random.Random(seed)
    data = open(exe, "rb").read()
    children = os.path.join("/proc", str(d.process.pid), "task")
    taken = refused = 0
    odd = []
    with Wire(d.socket) as w:
        for n in range(300):
            path = written(folder, "mutant", mutated(data, rng))
            with open(path, "rb") as f:
                w.send("OBJECT", field(1, "") + field(2, f"/mutant/{n}"), 1000 + n, fds=[f.fileno()])
                answer = answer_to(w, 1000 + n)
            if answer is None or (answer[0] == "NACK" and len(answer[3].get(4, b"")) < 10):
                odd.append((n, answer))
                break
            taken, refused = taken + (answer[0] == "ACK"), refused + (answer[0] == "NACK")
    tap.point(not odd and taken + refused == 300 and refused > 20 and os.path.exists(children),
              f"300 mutated executables: {taken} taken, {refused} refused in words, the daemon lives (seed {seed})",
              odd)
    paths = [written(folder, f"mutant-{n}", mutated(data, rng)) for n in range(60)]
    bad = []
    for path in paths:
        done = d.ctl("symbols", path)
        if done.returncode not in (0, 65, 77) or (done.returncode and not one_sentence(done, done.returncode, path)):
            bad.append((path, done))
    tap.point(not bad, f"60 through profctl: taken, or one sentence (seed {seed})", bad[:3])
    with Wire(d.socket) as w:
        asked = "ab" * 20
        w.send("UPLOAD", upload(sender_number(), 1, build_id=asked), 1)
        answer_to(w, 1)
        broken = written(folder, "broken", data[:32] + b"\xff" * 16 + data[48:])
        with open(broken, "rb") as f:
            w.send("OBJECT", field(1, asked) + field(2, "/bin/broken"), 2, fds=[f.fileno()])
            answer = answer_to(w, 2)
        status, body = w.query("/api/v1/builds/" + asked)
        notes = json.dumps(json.loads(body))
        tap.point(answer[0] == "NACK" and answer[3][4].decode()[:60] in notes,
                  "the build says why its names are missing",
                  (answer, notes[:600]))


def liars(tap, d, folder, exe):
    """Another user names the functions of an executable that root profiled. Root's report does not change by a byte."""
    if os.getuid() or not shutil.which("setpriv"):
        return tap.skip("symbol poisoning", "needs root and setpriv")
    ident = "0x" + build_id(exe)
    lie = compiled(folder, "lie", f"-Wl,--build-id={ident}",
                   text=SOURCE.replace("leaf", "evil").replace("middle", "wicked"))
    assert build_id(lie) == build_id(exe)
    copy = shutil.copy(PROFCTL, os.path.join(folder, "profctl"))
    os.chown(lie, 65534, 65534)
    env = dict(d.env, PROFD_SPOOL="/nonexistent/spool", HOME="/nonexistent")
    nobody = lambda *a: run(*NOBODY, copy, *a, env=env, cwd=folder)
    reports = lambda: [d.ctl("report", exe, *f).stdout for f in ((), ("--json",), ("-f", "gprof"))]
    before, listed = reports(), d.ctl("builds", "--json").stdout
    done = nobody("symbols", lie)
    tap.point(done.returncode == 0, "the liar's executable is taken, for himself", done)
    after = reports()
    tap.point(before == after and "leaf" in after[0] and "evil" not in "".join(after),
              "root's reports are the same bytes",
              (before[0][:500], after[0][:500]))
    tap.point(d.ctl("builds", "--json").stdout == listed, "and so is root's list")
    gmon = written(folder, "lie.gmon", small_gmon(lie, "evil", "wicked").data())
    os.chmod(gmon, 0o644)
    done = nobody("upload", "-e", lie, gmon)
    own = nobody("report", build_id(exe))
    tap.point(done.returncode == 0 and "leaf" in own.stdout and "evil" not in own.stdout,
              "root's names hold for the liar, too (a trusted variant names functions for everybody)",
              done.stderr + own.stderr)
    text = d.ctl("report", exe, "--uid", "0").stdout
    tap.point("evil" not in text and "leaf" in text, "root's own uploads keep root's names", text[:600])
    text = d.ctl("report", exe).stdout
    tap.point("leaf" in text, "over all users root's names win", text[:600])
    with Wire(d.socket) as w:
        body = json.loads(w.query("/api/v1/builds/" + build_id(exe))[1])
    tap.point("lie" not in os.path.basename(body.get("name", "")), "the build keeps the name root gave it", body)


def liars_first(tap, d, folder):
    """The same, but the liar comes before root has sent anything."""
    if os.getuid() or not shutil.which("setpriv"):
        return tap.skip("symbol poisoning in advance", "needs root and setpriv")
    exe = compiled(folder, "victim", "-Wl,--build-id=0xdeadbeef00112233")
    lie = compiled(folder, "early", "-Wl,--build-id=0xdeadbeef00112233", text=SOURCE.replace("leaf", "evil"))
    copy = os.path.join(folder, "profctl")
    env = dict(d.env, PROFD_SPOOL="/nonexistent/spool", HOME="/nonexistent")
    os.chown(lie, 65534, 65534)
    lies = written(folder, "early.gmon", small_gmon(lie, "evil").data())
    os.chmod(lies, 0o644)
    done = run(*NOBODY, copy, "upload", "-e", lie, lies, env=env, cwd=folder)
    own = run(*NOBODY, copy, "report", build_id(lie), env=env, cwd=folder).stdout
    tap.point(done.returncode == 0 and "evil" in own, "a liar who comes first names functions for himself",
              done.stderr + own[:400])
    gmon = written(folder, "victim.gmon", small_gmon(exe).data())
    up = d.ctl("upload", "-e", exe, gmon)
    text = d.ctl("report", exe, "--uid", "0").stdout + d.ctl("report", exe).stdout
    tap.point(up.returncode == 0 and "leaf" in text and "evil" not in text,
              "a liar who came first does not name root's functions, and root is still asked for the executable",
              done.stderr + up.stderr + text[:600])


def stripped(tap, d, folder):
    """Stored without names; shown with addresses; repaired by symbols that come later."""
    full = compiled(folder, "full", "-Wl,--build-id=0x5712bbed00010203")
    bare = os.path.join(folder, "bare")
    run("strip", "-s", "-o", bare, full)
    gmon = written(folder, "bare.gmon", small_gmon(full).data())
    done = d.ctl("upload", "-e", bare, gmon)
    tap.point(done.returncode == 0, "a stripped executable: stored", done)
    report = d.json("report", bare, "--json")
    names = [f["name"] for f in report["functions"]]
    row = next(r for r in d.json("builds", "--json")["rows"] if r["build_id"] == build_id(full))
    tap.point("leaf" not in names and any(n.startswith("0x") for n in names) and row["symbols"] is False,
              "its report shows addresses",
              (names, row))
    text = d.ctl("report", bare).stdout
    tap.point(report["builds"][0]["has_names"] is False and "names" in text.lower() and "leaf" not in text,
              "JSON and text say that the names are missing", (report["builds"], text[:800]))
    tap.point(d.ctl("symbols", full).returncode == 0, "symbols come later")
    report = d.json("report", bare, "--json")
    calls = {f["name"]: f["calls"] for f in report["functions"]}
    tap.point(calls.get("leaf") == 100 and calls.get("middle") == 100, "old data is repaired", calls)


def questions(tap, d, exe):
    """Queries through both listeners, with the right HTTP status and a problem document that names the value."""
    ident = build_id(exe)
    for target, status, words in (("/api/v1/builds?colour=red", 400, ["colour"]),
                                  (f"/api/v1/builds/{ident}?colour=red", 400, ["colour"]),
                                  (f"/api/v1/builds/{ident}/report?colour=red", 400, ["colour"]),
                                  (f"/api/v1/builds/{ident}/report?mode=true&mode=true", 400, ["mode"]),
                                  (f"/api/v1/builds/{ident}/report?mode=maybe", 400, ["maybe"]),
                                  (f"/api/v1/builds/{ident}/report?limit=-1", 400, ["-1"]),
                                  (f"/api/v1/builds/{ident}/report?limit=99999999999999999999", 400,
                                   ["99999999999999999999"]),
                                  (f"/api/v1/builds/{ident}/report?since=tomorrowish", 400, ["tomorrowish"]),
                                  (f"/api/v1/builds/{ident}/report?format=pdf", 400, ["pdf"]),
                                  (f"/api/v1/builds/{ident}/report?static=2", 400, ["2"]),
                                  ("/api/v1/builds/0123456789abcdef", 404, ["0123456789abcdef"]),
                                  ("/api/v1/builds/dea", 422, ["dea"]),
                                  ("/api/v1/builds/xyzzy/report", 422, ["xyzzy"]),
                                  ("/api/v1/builds/feed", 409, ["feed"]),
                                  ("/api/v2/builds", 404, [])):
        code, headers, body = d.get(target)
        problem = json.loads(body)
        with Wire(d.socket) as w:
            same = w.query(target)
        tap.point(code == status and headers["content-type"].startswith("application/problem+json")
                  and problem["status"] == status
                  and all(x in problem["detail"] for x in words) and same == (status, body),
                  f"{target[:60]}: {status}", (code, body, same))


def main():
    with Tap() as tap, Daemon() as d:
        folder = os.path.join(d.folder, "programs")
        os.makedirs(folder)
        exe = compiled(folder, "small", "-Wl,--build-id=0x600dbeef01020304")
        assert d.ctl("upload", "-e", exe, written(folder, "first.gmon", small_gmon(exe).data())).returncode == 0
        for n in (1, 2):
            twin = compiled(folder, f"twin{n}", f"-Wl,--build-id=0xfeed00000000000{n}")
            d.ctl("upload", "-e", twin, written(folder, "twin.gmon", small_gmon(twin).data()))
        pid = d.process.pid
        truncated(tap, d, folder, exe)
        damaged(tap, d, folder, exe)
        odd_files(tap, d, folder, exe)
        refused_uploads(tap, d, exe)
        questions(tap, d, exe)
        stripped(tap, d, folder)
        liars(tap, d, folder, exe)
        liars_first(tap, d, folder)
        hostile_elf(tap, d, folder, exe)
        tap.point(d.process.poll() is None and d.process.pid == pid, "one process answered all of it")
        tap.point(d.stop() == 0, "and ends with 0", d.logged()[-1000:])


main()
