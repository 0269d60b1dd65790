"""profctl export: a gmon.out of everything stored. gprof reads it, and prints for it what it prints for the files that
were uploaded and what `profctl report -f gprof` prints: real programs, sums that 16 and 32 bits do not hold, several
histograms."""
import json
import os
import pty
import random
import shutil
import struct
import subprocess

from harness import LONG, PROFCTL, Daemon, Gmon, Tap, bounds, free_port, profile, programs, run, symbols

RUNS = {
    "cycle": [["6"], ["9"], ["3"]],
    "calc": [["-s", "1", "-n", "900"], ["-s", "7", "-n", "6000"], ["1+2*(3-4)^2"]],
    "shapes": [["20000"], ["5000"]],
    "heat": [["50"], ["20"]],
    "twins": [["150"], ["250"]],
    "mandel": [["300", "90"], ["50", "150"], ["50", "50"]],
    "uselib": [["10"], ["3"]],
    "sorter": [["300000", "1"], ["100000", "2"]],
    "threads": [["2", "300"], ["3", "100"]],
}
QUIET = dict(os.environ, LC_ALL="C")


def gprof(exe, *files):
    return run("gprof", "-b", exe, *files, binary=True, env=QUIET)


def records(path, pointer=8):
    """(histograms, arcs) of a gmon.out: lists of (low, high, rate, bins) and (from, to, calls)."""
    data = open(path, "rb").read()
    assert data[:8] == b"gmon" + struct.pack("<I", 1), data[:8]
    at, histograms, arcs = 20, [], []
    p = "QQ" if pointer == 8 else "II"
    while at < len(data):
        if data[at] == 0:
            low, high, n, rate, _, _ = head = struct.unpack_from(f"<{p}II15sc", data, at + 1)
            at += 1 + struct.calcsize(f"<{p}II15sc")
            histograms.append((low, high, rate, struct.unpack_from(f"<{n}H", data, at)))
            at += 2 * n
        else:
            arcs.append(struct.unpack_from(f"<{p}I", data, at + 1))
            at += 1 + struct.calcsize(f"<{p}I")
    return histograms, arcs


def difference(a, b):
    for n, (x, y) in enumerate(zip(a.splitlines(), b.splitlines()), 1):
        if x != y:
            return f"line {n}\n {x!r}\n {y!r}\n"
    return f"{len(a)} and {len(b)} bytes\n"


def agree(tap, d, exe, files, name, *options):
    """gprof on the exported file, our own listing, and gprof on the files: one text."""
    out = os.path.join(d.folder, "exported")
    done = d.ctl("export", exe, "-o", out, *options)
    if not tap.point(done.returncode == 0 and done.stdout == done.stderr == "", f"{name}: exported", done):
        return out
    want, exported = gprof(exe, *files), gprof(exe, out)
    ours = d.ctl("report", exe, "-f", "gprof", *options, binary=True)
    tap.point(want.returncode == 0 and len(want.stdout) > 100 and exported.stdout == want.stdout
              and exported.stderr == b"",
              f"{name}: gprof prints the same for the exported file as for the {len(files)} uploaded",
              difference(want.stdout, exported.stdout) + (want.stderr + exported.stderr).decode())
    tap.point(ours.stdout == want.stdout, f"{name}: and report -f gprof too",
              difference(want.stdout, ours.stdout) + ours.stderr.decode())
    return out


def says(tap, done, status, words, name):
    lines = done.stderr.strip().splitlines()
    good = done.returncode == status and len(lines) == 1 and lines[0].startswith("profctl: ")
    tap.point(good and all(w in done.stderr for w in words), name,
              f"exit {done.returncode}, expected {status} {words}\n{done}")


def test_real_programs(tap, d, folder):
    for name, runs in RUNS.items():
        exe = os.path.join(folder, name)
        if not os.path.exists(exe):
            tap.skip(name, "no Fortran compiler")
            continue
        files = [profile(d.folder, exe, arguments, n) for n, arguments in enumerate(runs)]
        d.ctl("upload", "-e", exe, "-l", f"service={name}", *files)
        agree(tap, d, exe, files, name)
        again = d.ctl("upload", "-e", exe, "-l", "round=2", *files)
        assert again.returncode == 0, again.stderr
        agree(tap, d, exe, files + files, f"{name} twice")
        agree(tap, d, exe, files, f"{name}, the second time alone", "-l", "round=2")


def test_large_sums(tap, d, exe):
    """Five times 60,000 ticks in a bin, three times 4,000,000,000 calls of an arc."""
    s, (low, high) = symbols(exe), bounds(exe)
    at = {n: s[n][0] for n in ("main", "a", "b", "c")}
    files = []
    for n in range(5):
        g = Gmon(low, high).tick(at["a"], 60000).tick(at["b"], 65535).tick(at["c"], 1 + n)
        g.arc(at["main"] + 5, at["a"], 1).arc(at["a"] + 5, at["c"], 7)
        if n < 3:
            g.arc(at["a"] + 9, at["b"], 4000000000)
        files.append(g.write(os.path.join(d.folder, f"large-{n}")))
    done = d.ctl("upload", "-e", exe, "-l", "service=large", *files)
    assert done.returncode == 0, done.stderr
    out = agree(tap, d, exe, files, "sums of 300,000 ticks and 12,000,000,000 calls", "-l", "service=large")
    histograms, arcs = records(out)
    sums = [sum(column) for column in zip(*(h[3] for h in histograms))]
    tap.point(len(histograms) == 5 and sorted(x for x in sums if x) == [15, 300000, 327675],
              "repeated histograms hold the whole sum, the largest bin a full 65,535 each",
              (len(histograms), sorted(sums)[-4:]))
    tap.point([c for f, t, c in arcs if t == at["b"]] == [2**32 - 1, 2**32 - 1, 12000000000 - 2 * (2**32 - 1)]
              and len(arcs) == 5,
              "an arc of 12,000,000,000 is three records", arcs)
    text = gprof(exe, out).stdout.decode()
    tap.point("12000000000" in text, "gprof prints the calls in full", text)
    told = json.loads(d.ctl("export", exe, "-l", "service=large", "-o", out, "--json").stdout)
    tap.point(told == {"ticks": 300000 + 327675 + 15, "calls": 12000000040, "histograms": 1, "bins": 3, "arcs": 3,
                       "bits": 64,
                       "big_endian": False, "bytes": os.path.getsize(out)}, "--json says what was written", told)


def test_geometries(tap, d, program):
    """The text in two halves goes together, as gprof does it; other shapes want a choice."""
    s, (low, high) = symbols(program), bounds(program)
    middle, at = s["main"][0] & ~7, {n: s[n][0] for n in ("main", "a", "b")}
    if not low < middle < high:
        raise RuntimeError("main is not inside the text")
    # Other bounds than glibc's are taken for an executable that does not say where these are: another build, without
    # the symbols.
    exe = os.path.join(d.folder, "bare")
    done = run("objcopy", "--strip-symbol=etext", "--strip-symbol=__executable_start",
               "--remove-section=.note.gnu.build-id",
               program, exe)
    assert done.returncode == 0, done.stderr

    def half(low, high, name, **shape):
        g = Gmon(low, high, **shape)
        for n in ("main", "a", "b"):
            if low <= at[n] < high:
                g.tick(at[n], 30 + len(n))
        return g.arc(at["main"] + 5, at["a"], 3).write(os.path.join(d.folder, name))

    def upload(label, *files):
        done = d.ctl("upload", "-e", exe, "-l", f"service={label}", *files)
        assert done.returncode == 0, done.stderr
    upper, lower = half(middle, high & ~7, "upper"), half((low + 7) & ~7, middle, "lower")
    upload("halves", upper, lower)
    out = agree(tap, d, exe, [upper, lower], "two disjoint histograms", "-l", "service=halves")
    tap.point([h[0] for h in records(out)[0]] == [middle, (low + 7) & ~7], "in the order they came in", records(out)[0])
    one = os.path.join(d.folder, "one")
    done = d.ctl("export", exe, "-l", "service=halves", "--geometry", "1", "-o", one)
    tap.point(done.returncode == 0 and [h[0] for h in records(one)[0]] == [(low + 7) & ~7],
              "--geometry 1 is the lower one", done)
    for label, shape, words in (("rates", {"rate": 1000}, ["their rates differ", "100 ticks a second",
            "1000 ticks a second"]),
                                ("sizes", {"bins": (high - low) // 16}, ["their bins differ in size"])):
        files = half(low, high, "plain"), half(low, high, "odd", **shape)
        upload(label, *files)
        old = open(out, "rb").read()
        says(tap, d.ctl("export", exe, "-l", f"service={label}", "-o", out), 65, [*words, "geometry"],
             f"other {label} are refused by name")
        tap.point(open(out, "rb").read() == old, "and the file is what it was")
        got = set()
        for n in (1, 2):
            done = d.ctl("export", exe, "-l", f"service={label}", "-o", out, "--geometry", str(n))
            assert done.returncode == 0, done.stderr
            (histogram,), _ = records(out)
            got.add((histogram[2], len(histogram[3])))
            want = next(f for f in files if (records(f)[0][0][2], len(records(f)[0][0][3]))
                        == (histogram[2], len(histogram[3])))
            text = d.ctl("report", exe, "-f", "gprof", "-l", f"service={label}", "--geometry", str(n)).stdout
            tap.point(gprof(exe, out).stdout.decode() == text and sum(histogram[3]) == sum(records(want)[0][0][3]),
                      f"other {label}: --geometry {n} is one of them", (out, text))
        tap.point(len(got) == 2, f"other {label}: each can be had", got)


def test_terminal(tap, d, exe):
    try:
        main, side = pty.openpty()
    except OSError as e:
        tap.skip("not to a terminal", e)
        return
    done = subprocess.run([PROFCTL, "export", exe, "-o", "-"], env=d.env, stdout=side, stderr=subprocess.PIPE,
                          text=True, timeout=LONG)
    os.close(side)
    says(tap, done, 64, ["terminal"], "not to a terminal")
    try:
        written = os.read(main, 100)
    except OSError:
        written = b""
    os.close(main)
    tap.point(written == b"", "which gets nothing", written)


def test_output(tap, d, exe, folder):
    out = os.path.join(d.folder, "out")
    assert d.ctl("export", exe, "-o", out).returncode == 0
    data = open(out, "rb").read()
    tap.point(d.ctl("export", exe, "-o", "-", binary=True).stdout == data, "-o - writes the same bytes to a pipe")
    over_http = d.ctl("export", exe, "--server", f"http://127.0.0.1:{d.port}", "-o", "-", binary=True)
    tap.point(over_http.stdout == data, "and over HTTP", over_http.stderr)
    test_terminal(tap, d, exe)
    says(tap, d.ctl("export", exe), 64, ["-o FILE"], "without -o")
    says(tap, d.ctl("export", exe, "-o", "-", "--json"), 64, ["--json", "-o -"], "-o - and --json")
    says(tap, d.ctl("export", exe, "-o", out, "-l", "x"), 64, ["export: -l x"], "a label that is none")
    says(tap, d.ctl("export", "ffffffff", "-o", out), 66, ["ffffffff"], "an unknown build")
    says(tap, d.ctl("export", exe, "-o", out, "--since", "now"), 1, ["nothing matches", "no upload"],
         "a window without uploads")
    says(tap, d.ctl("export", exe, "-o", out, "--geometry", "9"), 64, ["--geometry 9"], "a geometry that is not there")
    says(tap, d.ctl("export", exe, "-o", "/nowhere/x"), 73, ["/nowhere/x"], "a file that cannot be made")
    tap.point(open(out, "rb").read() == data and not [f for f in os.listdir(d.folder) if f.endswith(".part")],
              "what is refused leaves the old file and no pieces")
    library = os.path.join(folder, "libwords.so")
    done = d.ctl("export", library, "-o", os.path.join(d.folder, "lib"))
    tap.point(done.returncode != 0 and done.stderr.count("\n") == 1
              and not os.path.exists(os.path.join(d.folder, "lib")),
              "a library that no gmon.out spoke of leaves no file", done)


def test_unknown_executable(tap, d, folder):
    """Uploads from the spool whose executable is gone: the layout comes from the file given, or is assumed and said."""
    exe = os.path.join(d.folder, "gone")
    shutil.copy(os.path.join(folder, "calc"), exe)
    done = run("objcopy", "--remove-section=.note.gnu.build-id", exe)
    assert done.returncode == 0, done.stderr
    g = profile(d.folder, exe, ["1+1"], 0)
    d.stop()
    assert d.ctl("upload", "-e", exe, g).returncode == 0
    kept = exe + ".kept"
    os.rename(exe, kept)
    d.start()
    calc = os.path.join(folder, "calc")
    other = profile(d.folder, calc, ["2+2"], 99)
    assert d.ctl("upload", "-e", calc, other).returncode == 0  # takes what waits in the spool along
    (row,) = [r for r in d.json("builds", "--json")["rows"] if not r["symbols"]]
    out = os.path.join(d.folder, "assumed")
    says(tap, d.ctl("export", row["build_id"], "-o", out), 0, ["64-bit little-endian is assumed"],
         "an unknown layout is assumed, and said")
    tap.point(gprof(kept, out).stdout == gprof(kept, g).stdout != b"", "and gprof reads it")
    done = d.ctl("export", kept, "-o", out)
    tap.point(done.returncode == 0 and done.stderr == "" and gprof(kept, out).stdout == gprof(kept, g).stdout,
              "given the executable itself nothing need be assumed", done)


def assemble(d, name, *flags):
    """A program of three functions of 32 bytes that nobody runs, with the symbol that says it could write a gmon.out;
    its path, or what the tools said."""
    source, exe = os.path.join(d.folder, name + ".s"), os.path.join(d.folder, name)
    with open(source, "w") as f:
        f.write(".globl __monstartup\n.set __monstartup, 0\n.text\n")
        f.write("".join(f".globl {n}\n.type {n}, @function\n{n}: .fill 32, 1, 0x90\n.size {n}, .-{n}\n"
                        for n in ("_start", "work", "leaf")))
    done = run("gcc", *flags, "-nostdlib", "-static", "-Wl,--build-id", "-o", exe, source)
    return exe, done.stderr if done.returncode else ""


def tiny(path, exe, pointer, ticks, arcs=(), repeat=1):
    """A gmon.out of such a program: ticks of _start, work and leaf, arcs between them; the histogram is repeated."""
    s, p = symbols(exe), "QQ" if pointer == 8 else "II"
    at = [s[n][0] for n in ("_start", "work", "leaf")]
    histogram = b"\0" + struct.pack(f"<{p}II15sc", at[0], at[2] + 32, 24, 100, b"seconds", b"s")
    histogram += struct.pack("<24H", *(ticks[n // 8] if n % 8 == 3 else 0 for n in range(24)))
    with open(path, "wb") as f:
        f.write(b"gmon" + struct.pack("<I12x", 1) + histogram * repeat)
        for caller, callee, calls in arcs:
            f.write(b"\1" + struct.pack(f"<{p}I", at[caller] + 5, at[callee], calls))
    return path


def test_32_bit(tap, d):
    """A 32-bit executable, assembled, and gmon.out files made by hand."""
    exe, wrong = assemble(d, "small", "-m32")
    if wrong:
        tap.skip("32-bit executables", "the linker makes none: " + wrong.splitlines()[-1])
        return
    files = [tiny(os.path.join(d.folder, f"small-{n}"), exe, 4, (0, 60000, n), ((0, 1, 1), (1, 2, 4000000000)))
             for n in range(3)]
    done = d.ctl("upload", "-e", exe, *files)
    assert done.returncode == 0, done.stderr
    out = agree(tap, d, exe, files, "32-bit")
    histograms, arcs = records(out, 4)
    tap.point(len(histograms) == 3 and [c for _, _, c in arcs]
              == [3, 2**32 - 1, 2**32 - 1, 12000000000 - 2 * (2**32 - 1)],
              "32-bit: 4-byte addresses", (len(histograms), arcs))


def test_enormous_bin(tap, d):
    """More than 32 bits in a bin: the file holds them, gprof does not, and it is said."""
    exe, wrong = assemble(d, "tiny")
    assert not wrong, wrong
    one = tiny(os.path.join(d.folder, "tiny.gmon"), exe, 8, (1, 65535, 0), ((0, 1, 1),), repeat=4096)
    done = d.ctl("upload", "-e", exe, *[one] * 16)
    assert done.returncode == 0, done.stderr
    out = agree(tap, d, exe, [one] * 16, "a bin of 4,294,901,760 ticks")
    done = d.ctl("upload", "-e", exe, one)
    assert done.returncode == 0, done.stderr
    says(tap, d.ctl("export", exe, "-o", out), 0, [str(17 * 4096 * 65535), "4294967295"],
         "a bin beyond gprof's 32 bits: a warning")
    tap.point(sum(h[3][11] for h in records(out)[0]) == 17 * 4096 * 65535, "the file holds it all the same")


def test_random(tap, d, exe):
    """Many arcs with equal times and counts, in another order in every file: gprof breaks the ties by the order of
    records."""
    seed = int(os.environ.get("SEED", "1"))
    r = random.Random(seed)
    low, high = bounds(exe)
    text = symbols(exe)["_start"][0]
    places = [(a, n) for a, n in symbols(exe).values() if text <= a < high - 64 and n > 8]
    for n in range(12):
        arcs = [(r.choice(places), r.choice(places)) for _ in range(r.randint(1, 60))]
        files = []
        for k in range(r.randint(1, 5)):
            g = Gmon(low, high, bins=(high - low) // r.choice([4, 4, 8]) if k == 0 else len(g.bins))
            for address, size in r.sample(places, r.randint(0, len(places))):
                g.bins[(address + r.randrange(size) - low) * len(g.bins)
                       // (high - low)] = r.choice([1, 1, 5, 30000, 65535])
            for (caller, size), (callee, _) in r.sample(arcs, r.randint(0, len(arcs))):
                g.arc(caller + r.randrange(1, size), callee, r.choice([0, 1, 1, 1, 2, 100, 2**31, 2**32 - 1]))
            files.append(g.write(os.path.join(d.folder, f"random-{n}-{k}")))
        done = d.ctl("upload", "-e", exe, "-l", f"service=random{n}", *files)
        assert done.returncode == 0, done.stderr
        agree(tap, d, exe, files, f"random counts {n} (SEED={seed})", "-l", f"service=random{n}")


def main():
    port = free_port()
    with Tap() as tap, Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        d.port = port
        folder = programs(os.path.join(d.folder, "programs"))
        cycle = os.path.join(folder, "cycle")
        test_real_programs(tap, d, folder)
        test_large_sums(tap, d, cycle)
        test_geometries(tap, d, cycle)
        test_output(tap, d, os.path.join(folder, "calc"), folder)
        test_32_bit(tap, d)
        test_enormous_bin(tap, d)
        test_random(tap, d, os.path.join(folder, "shapes"))
        test_unknown_executable(tap, d, folder)


main()
