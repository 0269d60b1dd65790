"""profctl and libprofd against a real profd: what works, what waits in the spool, what is refused, and in which
words."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess

from harness import AS_NOBODY, BUILD, NOBODY, PROFCTL, PROFD, ROOT, Daemon, Tap, bounds, free_port, readable_copy, \
    run, until


def compile_c(folder, name, flags="-pg -O0", text=None):
    source = os.path.join(folder, name + ".c")
    with open(source, "w") as f:
        f.write(text or "static volatile int n;\n__attribute__((noinline)) void leaf(int i) { n += i; }\n"
                "__attribute__((noinline)) void middle(int i) { leaf(i); leaf(i); }\n"
                "int main(void) { for (int i = 0; i < 100; i++) middle(i); return 0; }\n")
    exe = os.path.join(folder, name)
    done = run("gcc", *flags.split(), "-o", exe, source)
    assert done.returncode == 0, done.stderr
    return exe


def profile(exe, name="gmon.out"):
    folder = os.path.dirname(exe)
    env = {k: v for k, v in os.environ.items() if k != "GMON_OUT_PREFIX"}
    done = run(exe, cwd=folder, env=env)
    path = os.path.join(folder, name)
    if name != "gmon.out":
        os.rename(os.path.join(folder, "gmon.out"), path)
    assert done.returncode == 0, done.stderr
    return path


def build_id(exe):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", exe).stdout).group(1)


def says(tap, done, status, words, name):
    """Exit status, one sentence on stderr beginning with profctl:, and the words in it."""
    lines = done.stderr.strip().splitlines()
    good = done.returncode == status and len(lines) == 1 and lines[0].startswith("profctl: ")
    tap.point(good and all(w in done.stderr for w in words), name,
              f"exit {done.returncode} (expected {status}), words {words}\n{done.stdout}{done.stderr}")


def split_twins(done):
    """The warnings of upload about other executables that fit as well; and the other lines."""
    lines = done.stderr.splitlines()
    return [[line for line in lines if (", too; it is stored as a profile of " in line) == of] for of in (True, False)]


def row(d, exe):
    return next((r for r in d.json("builds", "--json")["rows"] if r["build_id"] == build_id(exe)), None)


def uploads(d, exe):
    found = row(d, exe)
    return found["uploads"] if found else 0


def test_upload_and_report(tap, d, exe, gmon):
    done = d.ctl("upload", "-e", exe, "-l", "service=web", "-l", "version=2", gmon)
    warnings, others = split_twins(done)
    tap.point(done.returncode == 0 and re.fullmatch(r"1 upload of \S+ \(build [0-9a-f]{12}\) stored\n", done.stdout)
              and not others, "upload says in one line what it did", done)
    tap.point([re.search(r"it fits \S+/(\w+) ", w)[1] for w in sorted(warnings)] == ["twin1", "twin2"],
              "and that two builds beside it fit as well", done)
    found = row(d, exe)
    tap.point(found and found["uploads"] == 1 and found["symbols"] and found["calls"] > 0 and not found["exact"],
              "the build is there, with the names that were asked for, and says it is not exact", found)
    report = d.json("report", exe, "-f", "json")
    calls = {f["name"]: f["calls"] for f in report["functions"]}
    tap.point(calls.get("leaf") == 200 and calls.get("middle") == 100, "report of an executable: calls are exact",
              calls)
    tap.point(d.json("report", build_id(exe)[:6], "--json")["functions"] == report["functions"],
              "report of a prefix says the same")
    text = d.ctl("report", exe)
    tap.point(text.returncode == 0 and "Call graph" in text.stdout and "middle" in text.stdout, "text is the default",
              text)
    flat, graph = d.ctl("report", exe, "--flat").stdout, d.ctl("report", exe, "--graph").stdout
    tap.point("Call graph" not in flat and "Flat profile" in flat and "Flat profile" not in graph
              and "Call graph" in graph,
              "--flat and --graph")
    want = run("gprof", "-b", exe, gmon).stdout
    got = d.ctl("report", exe, "-f", "gprof").stdout
    tap.point(got == want, "-f gprof is gprof's listing byte for byte", f"--- gprof\n{want}\n--- profctl\n{got}")
    tap.point(d.json("report", exe, "-l", "service=web", "--json")["provenance"]["uploads"] == 1,
              "-l narrows the report")
    for words in (["report", exe, "-l", "service=db"], ["report", exe, "-l", "service=db", "--json"],
                  ["report", exe, "--until", "2001-01-01T00:00:00Z", "-f", "csv"],
                  ["report", exe, "--until", "2001-01-01"], ["top", exe, "-l", "service=db"],
                  ["top", exe, "-l", "service=db", "--json"], ["report", exe, "-f", "gprof", "-l", "service=db"],
                  ["export", exe, "-o", "-", "-l", "service=db"]):
        says(tap, d.ctl(*words), 1, ["nothing matches", build_id(exe)[:6]], f"{words[0]} of nothing")
    for words in (["--focus", "zork"], ["--focus", "zork", "--json"], ["--focus", "zork", "--flat"]):
        says(tap, d.ctl("report", exe, *words), 1, ["nothing matches", "zork"], f"report {' '.join(words)}")
    _, _, body = d.get(f"/api/v1/builds/{build_id(exe)}/report?focus=zork&format=text")
    tap.point("Shown     no function with calls or time has in its name zork" in str(body),
              "a text without a matching function says so", body)
    status, _, body = d.get(f"/api/v1/builds/{build_id(exe)}/report?label.service=db")
    nothing = json.loads(body)["provenance"]
    tap.point(status == 200 and nothing["uploads"] == 0 and nothing["exact"] is None, "an empty report is not exact",
              nothing)
    tap.point(len(d.json("report", exe, "--limit", "1", "--sort", "calls", "--json")["functions"]) == 1,
              "--limit and --sort")
    labels = {r["name"] for r in d.json("labels", "--json")["rows"]}
    tap.point({"service", "version", "host"} <= labels, "labels, host among them", labels)
    tap.point([r["value"] for r in d.json("labels", "service", "--json")["rows"]] == ["web"]
              and "web" in d.ctl("labels", "service").stdout, "values of a label")


def test_output(tap, d, exe):
    out = os.path.join(d.folder, "out.txt")
    done = d.ctl("report", exe, "-o", out)
    tap.point(done.returncode == 0 and done.stdout == "" and "Call graph" in open(out).read(), "-o writes the file",
              done)
    says(tap, d.ctl("report", "ffffffff", "-o", out), 66, ["ffffffff"], "a report that fails leaves the old file")
    tap.point("Call graph" in open(out).read() and not glob.glob(d.folder + "/*.part"), "whole, and no pieces about")
    tap.point(d.ctl("report", exe, "-o", "/dev/null").returncode == 0 and not os.path.isfile("/dev/null"),
              "-o /dev/null leaves the device alone")
    says(tap, d.ctl("report", exe, "-o", "/nowhere/x"), 73, ["/nowhere/x"], "a file that cannot be made")
    full = subprocess.run([PROFCTL, "report", exe], env=d.env, stdout=open("/dev/full", "w"), stderr=subprocess.PIPE,
                          text=True)
    tap.point(full.returncode == 74 and "profctl: " in full.stderr, "a full disk under stdout is an error", full)


def test_many(tap, d, exe, gmon):
    before = uploads(d, exe)
    done = d.ctl("upload", "-e", exe, *[gmon] * 400)
    tap.point(done.returncode == 0 and done.stdout.startswith("400 uploads"), "400 files on one connection", done)
    tap.point(uploads(d, exe) == before + 400, "each has an id of its own")
    calls = {f["name"]: f["calls"] for f in d.json("report", exe, "--json")["functions"]}
    tap.point(calls["leaf"] == 200 * (before + 400), "and every number is the sum", calls)


def test_partial_refusal(tap, d, exe, gmon, other_gmon):
    before = uploads(d, exe)
    done = d.ctl("upload", "-e", exe, gmon, other_gmon, gmon)
    done.stderr = "\n".join(split_twins(done)[1])
    says(tap, done, 65, [other_gmon, "not the executable that was profiled; name the executable that ran with -e"],
         "a wrong file among good ones is named, status 65")
    alone = d.ctl("upload", "-e", exe, os.path.join(d.folder, "there is no such file"))
    tap.point(alone.stdout == "Nothing stored: 1 file refused.\n" and alone.returncode != 0,
              "a file that is refused alone: nothing stored", alone)
    tap.point("2 uploads" in done.stdout and "1 refused" in done.stdout and uploads(d, exe) == before + 2,
              "and the good ones arrive", done)
    data = json.loads(d.ctl("upload", "--json", "-e", exe, gmon).stdout)
    tap.point(data == {"build_id": build_id(exe), "stored": 1, "spooled": 0, "refused": 0, "executables_refused": 0,
                       "stored_from_spool": 0},
              "upload --json", data)


LONGER = "int main(void) { return 0; }\n" + "".join(f"int f{n}(int i) {{ return i * {n}; }}\n" for n in range(20))


def test_same_layout(tap, d):
    """The callees tell builds apart that span the same addresses; a build is never refused its own file."""
    folder = os.path.join(d.folder, "layouts")
    os.mkdir(folder)
    small, main = "long small(long n) { return n; }\n", "int main(void) { return (int)(large(9) - 34); }\n"
    large = "long large(long n) { return n < 2 ? n : large(n - 1) + large(n - 2); }\n"
    one, two = (compile_c(folder, name, "-pg -O0", text)
                for name, text in (("one", small + large + main), ("two", large + small + main)))
    files = [profile(one, "one.out"), profile(two, "two.out")]
    spans = [bounds(one), bounds(two)]
    tap.point(spans[0] == spans[1], "two builds of the same layout", spans)
    says(tap, d.ctl("upload", "-e", two, files[0]), 65, ["neither the start of a function nor behind a call of mcount"],
         "another build of the same layout")
    for name, flags in (("own", ""), ("own-fixed", "-no-pie"), ("own-static", "-static"), ("own-fentry", "-mfentry"),
                        ("own-slots", "-fno-plt"), ("own-large", "-mcmodel=large -no-pie -fno-pie")):
        if name in ("own-fentry", "own-large") and os.uname().machine != "x86_64":
            continue
        exe = compile_c(folder, name, "-pg -O1 " + flags, large + main)
        gmon, stripped = profile(exe, name + ".out"), exe + "-stripped"
        assert run("strip", "-o", stripped, exe).returncode == 0
        for file in (exe, stripped):
            done = d.ctl("upload", "-e", file, gmon)
            tap.point(done.returncode == 0 and not split_twins(done)[1],
                      f"{os.path.basename(file)}: its own file is stored", done)
    shutil.rmtree(folder)
    os.mkdir(folder)
    nine, eight = (compile_c(folder, name, "-pg -O0", f'const char version[] = "{name[0]}";\n' + large + main)
                   for name in ("nine", "eight"))
    gmon = shutil.move(profile(eight, "eight.out"), os.path.join(d.folder, "eight.out"))
    done = d.ctl("upload", "-e", nine, gmon)
    warning = f"{gmon}: it fits {eight} (build {build_id(eight)[:12]}), too; it is stored as a profile of {nine}"
    tap.point(done.returncode == 0 and done.stderr.count(warning) == 1 and done.stderr.count("\n") == 1,
              "the file of another build that cannot be told apart is stored with a warning", done)
    elsewhere = os.path.join(d.folder, "elsewhere")
    os.mkdir(elsewhere)
    nine = shutil.move(nine, elsewhere)
    done = d.ctl("upload", "-e", nine, gmon)
    tap.point(done.returncode == 0 and done.stderr == "", "without the other build there is no warning", done)
    d.ctl("upload", "-e", eight, gmon)
    done = d.ctl("upload", "-e", nine, gmon)
    tap.point(done.returncode == 0 and done.stderr.count(f"it fits {eight} ") == 1 and done.stderr.count("\n") == 1,
              "it is found by what the daemon has, too", done)


def test_refusals(tap, d, exe, gmon, other, stranger):
    folder, before = os.path.dirname(exe), uploads(d, exe)
    data = open(gmon, "rb").read()

    def bad(name, content):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(content)
        return path
    for size in (0, 3, 19, 21, 50, len(data) - 1):
        path = bad("cut", data[:size])
        says(tap, d.ctl("upload", "-e", exe, path), 65, [path], f"a gmon.out cut to {size} bytes")
    patched = lambda at, new: data[:at] + new + data[at + len(new):]
    for name, content, words in (
            ("magic", patched(0, b"GMON"), []), ("version", patched(4, b"\2"), ["2"]),
            ("tag", patched(20, b"\x09"), ["9"]),
            ("bins", patched(37, b"\xff\xff\xff\x7f"), []), ("low", patched(21, b"\xff" * 7 + b"\x7f"), []),
            ("text", b"hello\n", [])):
        path = bad(name, content)
        says(tap, d.ctl("upload", "-e", exe, path), 65, [path, *words], f"a gmon.out with a bad {name}")
    says(tap, d.ctl("upload", "-e", other, gmon), 65, [other, "not the executable"], "the EXE of another program")
    for name, flags in (("plain", "-O0"), ("plain-fixed", "-O0 -no-pie"), ("plain-stripped", "-O0 -s")):
        says(tap, d.ctl("upload", "-e", compile_c(folder, name, flags), gmon), 65, ["not linked with -pg"],
             f"an EXE without -pg: {name}")
    longer = compile_c(folder, "longer", "-pg -O0 -s", LONGER)
    says(tap, d.ctl("upload", "-e", longer, gmon), 65, ["the histogram spans", "code that ends elsewhere"],
         "a stripped EXE with -pg and other code")
    says(tap, d.ctl("upload", "-e", stranger, gmon), 65, ["stranger"], "an EXE at other addresses")
    says(tap, d.ctl("upload", "-e", "/etc/passwd", gmon), 65, ["/etc/passwd", "ELF", "begins with \"root\""],
         "an EXE that is no ELF")
    for size in (0, 1, 6, 51):
        says(tap, d.ctl("report", bad("short", (b"hello\n" * 9)[:size])), 65,
             ["not an executable or library (ELF)", "hell"[:size] if size else "empty"],
             f"a text of {size} bytes as EXE")
    says(tap, d.ctl("upload", "-e", exe, bad("notes", b"hello\n")), 65, ["not a profile", "gmon.out", "\"hello\""],
         "a text as profile")
    says(tap, d.ctl("upload", "-e", "/", gmon), 65, ["/", "regular"], "an EXE that is a directory")
    says(tap, d.ctl("upload", "-e", "/nowhere", gmon), 66, ["/nowhere"], "an EXE that is not there")
    says(tap, d.ctl("upload", gmon, cwd=d.folder), 66, ["no executable named", "-e EXE", "a.out"],
         "no EXE and no a.out")
    sparse = bad("sparse", b"")
    os.truncate(sparse, 5 << 30)
    says(tap, d.ctl("upload", "-e", sparse, gmon), 65, [sparse, "5368709120"], "a sparse EXE of 5 GB")
    says(tap, d.ctl("symbols", sparse), 65, [sparse], "and as symbols")
    says(tap, d.ctl("upload", "-e", exe, "/nowhere"), 66, ["/nowhere"], "a gmon.out that is not there")
    for label in ("x", "=v", "1a=v", "__name=v", "a-b=v", "a=" + "v" * 1025):
        says(tap, d.ctl("upload", "-e", exe, "-l", label, gmon), 64, [label.split("=")[0][:20]],
             f"label {label[:12]!r}")
    says(tap, d.ctl("upload", "-e", exe, "-l", "a=1", "-l", "a=2", gmon), 64, ["a", "twice"], "a label given twice")
    tap.point(uploads(d, exe) == before, "nothing of all this was stored")


def test_bad_questions(tap, d, exe, twins):
    says(tap, d.ctl("report", "0123456789abcdef"), 66, ["0123456789abcdef"], "an unknown build")
    says(tap, d.ctl("report", "abc"), 66, ["abc"], "a prefix that is too short")
    says(tap, d.ctl("report", twins), 65, [twins], "an ambiguous prefix")
    says(tap, d.ctl("report", exe, "--since", "yesterday"), 64, ["--since yesterday is not a time"],
         "a time that is none")
    says(tap, d.ctl("report", exe, "-f", "docx"), 64, ["docx"], "an unknown format")
    says(tap, d.ctl("report", exe, "--sort", "size"), 64, ["size"], "an unknown order")
    says(tap, d.ctl("report", exe, "-l", "nothing"), 64, ["nothing"], "a label without value")
    says(tap, d.ctl("report", exe, "--flat", "--graph"), 64, ["--flat"], "--flat and --graph")
    says(tap, d.ctl("report", exe, "--limit", "-1"), 64, ["-1"], "a limit below zero")
    says(tap, d.ctl("report"), 64, ["usage"], "no build")
    says(tap, d.ctl("report", "a", "b"), 64, ["\"b\""], "two builds")
    says(tap, d.ctl("report", exe, "--frobnicate"), 64, ["--frobnicate"], "an unknown option")
    says(tap, d.ctl("report", "--limit"), 64, ["--limit"], "an option without its value")
    says(tap, d.ctl("frobnicate"), 64, ["frobnicate", "`profctl help`"], "an unknown verb")
    for words in (["reprot"], ["help", "repotr"]):
        says(tap, d.ctl(*words), 64, [words[-1], "did you mean report?"], "a verb with two letters exchanged")
    says(tap, d.ctl("report", "--limt", "3", exe), 64, ["--limt", "did you mean --limit?"],
         "an option without a letter")
    says(tap, d.ctl("report", "--fo", exe), 64, ["more than one", "--fo"], "the beginning of two options")
    says(tap, d.ctl("report", "--flat=1", exe), 64, ["no value", "--flat=1"], "a value for an option that takes none")
    text = d.ctl("report", exe, "--json").stdout
    for words in (["--json", "report", exe], ["--socket", d.socket, "--json", "report", exe],
                  ["--server=unix:" + d.socket, "report", "--json", exe]):
        tap.point(run(PROFCTL, *words, env=d.env).stdout == text, f"before the verb: {' '.join(words)}")
    done = run(PROFCTL, "--socket", d.socket, "run", "true", env=d.env)
    tap.point(done.returncode == 0 and done.stderr == "", "--socket before run", done)
    says(tap, d.ctl("-l", "a=b", "report", exe), 64, ["-l", "must follow the verb"], "an option of a verb before it")
    says(tap, d.ctl("--json"), 64, ["no verb"], "options and no verb")
    tap.point(d.ctl("-V").stdout == d.ctl("version").stdout != "" and d.ctl("help", "help").stdout ==
              d.ctl("help").stdout, "-V, and help of help")
    says(tap, d.ctl("labels", "nosuch"), 66, ["nosuch", "`profctl labels`"], "a label that no upload has")
    tap.point('No upload here has the label "nosuch"' in d.ctl("groups", exe, "--by", "nosuch").stdout,
              "groups by a label that no upload has")
    says(tap, d.ctl("builds", "x"), 64, ["unexpected", "\"x\""], "an argument too many")
    for words, named in (("--until soon", "--until soon"), ("--uid joe", "--uid joe"), ("--scope prog", "--scope prog"),
                         ("--since now --until now-1h", "--since now is not before --until now-1h"),
                         ("-m a=b", "--match a=b")):
        says(tap, d.ctl("report", exe, *words.split()), 64, [named], f"the option is named: {words}")
    says(tap, d.ctl("diff", exe, exe, "--a-since", "soon"), 64, ["--a-since soon"], "and that of one side")
    says(tap, d.ctl("top", exe, "-w", "soon"), 64, ["--window", "soon"], "and top's")
    tap.point(d.ctl("help", "--help").stdout == d.ctl("help").stdout != "", "help --help prints the verbs")
    says(tap, run(PROFCTL), 64, ["verb"], "no verb")
    says(tap, d.ctl("builds", "--socket", "x" * 108), 64, ["108 bytes", "107"], "a socket path that is too long")
    says(tap, d.ctl("builds", "--server", "ftp://x"), 64, ["ftp://x"], "an address that is none")
    says(tap, d.ctl("builds", "--socket", "/nowhere/s"), 69, ["/nowhere/s", "`profd`", "PROFD_SOCKET"],
         "no daemon, and what to do")
    name = os.path.basename(exe)
    says(tap, d.ctl("report", "nosuch"), 66, ["nosuch", name, "profctl builds"], "an unknown name, and the known ones")
    says(tap, d.ctl("report", "ab" * 20), 66, ["ab" * 20, "profctl builds"], "an unknown build")
    says(tap, d.ctl("pause", "nolabel=x"), 66, ["nolabel", "profctl ps"], "no process with that label")
    says(tap, d.ctl("groups", exe), 64, ["--by", "--step", "profctl labels"], "groups by nothing")
    text = d.ctl("groups", "--help").stdout
    tap.point("[options] PROGRAM|BUILD|EXE --by LABEL|--step T" in text, "groups --help: what is required", text)
    says(tap, d.ctl("upload", "--server", "http://127.0.0.1:9", "-e", exe, "x"), 64, ["queries only"],
         "no uploads by http")
    for verb in ("upload", "symbols", "builds", "report", "labels", "status"):
        done = d.ctl(verb, "--help")
        tap.point(done.returncode == 0 and done.stdout.startswith(f"usage: profctl {verb}")
                  and "--socket PATH" in done.stdout
                  and "--json" in done.stdout, f"{verb} --help", done)


def test_no_runtime_directory(tap, folder):
    """Without XDG_RUNTIME_DIR, profctl looks where profd has its socket."""
    uid, system = 54321, "/run/profd/profd.sock"
    own = f"/run/user/{uid}"
    if os.getuid() != 0 or os.path.exists(system) or os.path.exists(own):
        return tap.skip("the socket below /run/user", "needs root and a machine without that user's and root's daemon")
    os.makedirs(own + "/profd")
    try:
        with open(own + "/profd/profd.sock", "w", encoding="ascii"):
            pass
        os.chown(own + "/profd/profd.sock", uid, uid)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PROFD", "XDG"))}
        done = run("setpriv", f"--reuid={uid}", "--clear-groups", readable_copy(PROFCTL, folder), "builds", env=env)
        says(tap, done, 69, [own + "/profd/profd.sock"], "the socket below /run/user")
    finally:
        shutil.rmtree(own)
    return None


def test_stripped(tap, d, folder):
    exe = compile_c(folder, "bare", "-pg -O0 -s")
    gmon = profile(exe)
    tap.point(d.ctl("upload", "-e", exe, gmon).returncode == 0, "a stripped EXE is stored")
    named = os.path.join(folder, "named")
    run("gcc", "-pg", "-O0", "-o", named, exe + ".c")
    text = d.ctl("report", exe).stdout
    tap.point("leaf" not in text and "0x" in text, "its report shows addresses", text)
    same = build_id(exe) == build_id(named)
    if not same:  # ld hashes after stripping on this system
        run("gcc", "-pg", "-O0", "-Wl,--build-id=0xabcdef01", "-o", named, exe + ".c")
        run("strip", "-o", exe, named)
        gmon = profile(exe)
        d.ctl("upload", "-e", exe, gmon)
    text = d.ctl("report", exe).stdout
    tap.point("leaf" not in text, "and no names it does not know", text)
    done = d.ctl("symbols", named)
    tap.point(done.returncode == 0 and "stored" in done.stdout, "symbols sends the names later", done)
    text = d.ctl("report", exe).stdout
    tap.point("leaf" in text and "middle" in text, "and the old data has them", text)


def test_spool(tap, d, exe, gmon):
    before = uploads(d, exe)
    d.stop()
    done = d.ctl("upload", "-e", exe, "-l", "service=late", gmon, gmon)
    done.stderr = "\n".join(split_twins(done)[1])
    says(tap, done, 0, ["no daemon", "2 uploads", "spool"], "without a daemon uploads are kept, and it is said")
    entries = glob.glob(d.env["PROFD_SPOOL"] + "/*.upload")
    tap.point(len(entries) == 2, "in the spool", entries)
    done = d.ctl("status")
    tap.point(done.returncode == 69 and "2 uploads wait" in done.stdout and "no daemon" in done.stderr,
              "status tells of them", done)
    kept = {e: open(e, "rb").read() for e in entries}
    d.start()
    done = d.ctl("upload", "-e", exe, gmon)
    tap.point(done.returncode == 0 and "2 from the spool" in done.stdout, "the next upload takes them along", done)
    tap.point(uploads(d, exe) == before + 3 and not glob.glob(d.env["PROFD_SPOOL"] + "/*"), "and the spool is empty")
    for path, content in kept.items():  # as after a crash between commit and ACK
        with open(path, "wb") as f:
            f.write(content)
    done = d.ctl("upload", "-e", exe, gmon)
    tap.point(not glob.glob(d.env["PROFD_SPOOL"] + "/*") and uploads(d, exe) == before + 4,
              "delivered twice counts once", done)
    path = next(iter(kept))
    with open(path, "wb") as f:
        f.write(kept[path][:-1])
    done = d.ctl("upload", "-e", exe, gmon)
    tap.point(done.returncode == 0 and os.path.basename(path) in done.stderr and not os.path.exists(path),
              "a broken file in the spool is told and removed", done)
    d.stop()
    new = compile_c(os.path.dirname(exe), "fresh")
    done = d.ctl("upload", "-e", new, profile(new, "fresh.gmon"))
    d.start()
    d.ctl("upload", "-e", exe, gmon)
    tap.point(row(d, new)["symbols"], "an executable that is asked for after the spool is found again", row(d, new))


def test_http(tap, exe):
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}") as d:
        token = d.token_file("me")
        d.ctl("upload", "-e", exe, profile(exe))
        url = f"http://127.0.0.1:{port}"
        says(tap, d.ctl("builds", "--server", url), 77, [], "http without the token")
        done = d.ctl("report", exe, "--server", url, "--token-file", token)
        same = d.ctl("report", exe)
        tap.point(done.returncode == 0 and done.stdout == same.stdout, "http with it: the same bytes", done)
        tap.point(d.json("builds", "--json", "--server", url, "--token-file", token)["rows"][0]["build_id"]
                  == build_id(exe),
                  "and lists")


def sanitizers(library):
    """A program must be linked with the sanitizers that its library was built with."""
    data = open(library, "rb").read()
    return [f"-fsanitize={name}" for mark, name in ((b"__asan_init", "address"), (b"__tsan_init", "thread"),
                                                   (b"__ubsan_handle", "undefined")) if mark in data]


def test_library(tap, d, folder, exe, gmon):
    """The example in libprofd(3) compiles as it stands, against an installation's layout, and works."""
    page = open(os.path.join(ROOT, "client/libprofd.3")).read()
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", page, re.S | re.M)
    unescape = lambda t: t.replace("\\e", "\\").replace("\\&", "").replace("\\-", "-")
    include = os.path.join(folder, "include")
    os.makedirs(os.path.join(include, "proto"))
    run("cp", os.path.join(ROOT, "client/profd.h"), include)
    run("cp", os.path.join(ROOT, "proto/status.h"), os.path.join(include, "proto"))
    programs_found = [unescape(b) for b in blocks if "int\nmain" in b]
    tap.point(len(programs_found) == 2, "libprofd(3) has two whole programs", len(programs_found))
    for i, text in enumerate(programs_found):
        source, out = os.path.join(folder, f"example{i}.c"), os.path.join(folder, f"example{i}")
        with open(source, "w") as f:
            f.write(text)
        library = os.path.join(BUILD, "libprofd.so")
        run("ln", "-sf", library, os.path.join(folder, "libprofd.so.0"))
        done = run("gcc", *sanitizers(library), "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", include,
                   "-o", out, source, library,
                   f"-Wl,-rpath,{folder}")
        tap.point(done.returncode == 0, f"example {i + 1} compiles without warnings", done.stderr)
        before = uploads(d, exe)
        done = run(out, exe, gmon, env=d.env)
        if i == 0:
            tap.point(done.returncode == 0 and uploads(d, exe) == before + 1, "example 1 delivers an upload", done)
        else:
            tap.point(done.returncode == 0 and build_id(exe) in done.stdout, "example 2 asks without blocking", done)
    private = re.search(r"^Libs.private: (.*)", open(os.path.join(ROOT, "client/libprofd.pc.in")).read(), re.M).group(1)
    done = run("gcc", *sanitizers(library), "-I", include, "-o", out, source, os.path.join(BUILD, "libprofd-static.a"),
               *private.split())
    tap.point(done.returncode == 0, "the static library links with what libprofd.pc says, and no more", done)
    header = open(os.path.join(ROOT, "client/profd.h")).read()
    declared = set(re.findall(r"\b(profd_[a-z_]+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    exported = set(re.findall(r" T (profd_\w+)", run("nm", "-D", "--defined-only", library).stdout))
    tap.point(declared <= exported, "every function of profd.h is in libprofd.so", declared - exported)
    done = run("sh", "-c", f"echo '#include <profd.h>' | g++ -std=c++17 -Wall -Werror -fsyntax-only -I {include} -x "
                           f"c++ -")
    tap.point(done.returncode == 0, "profd.h is C++ too", done.stderr)


def test_terminal(tap, d, folder):
    name = "evil\x1b]0;owned\x07\u202e"
    exe = compile_c(folder, "evil")
    odd = os.path.join(folder, name)
    os.rename(exe, odd)
    gmon = profile(odd, "evil.gmon")
    done = d.ctl("upload", "-e", odd, gmon)
    listing = d.ctl("builds")
    text = done.stdout + done.stderr + listing.stdout
    tap.point(done.returncode == 0 and "evil" in listing.stdout and not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)
              and "\u202e" not in listing.stdout, "a file name with escapes reaches no terminal", repr(text))


def test_set_user_id(tap, d, folder):
    """A program that runs with more rights than its caller takes no socket from the caller's environment."""
    if os.geteuid() != 0:
        return tap.skip("a set-user-id profctl ignores PROFD_SOCKET", "needs root")
    copy = os.path.join(folder, "suid-profctl")
    run("cp", PROFCTL, copy)
    os.chmod(copy, 0o4755)
    done = run(*AS_NOBODY, copy, "status",
               env={**d.env, "PROFD_SOCKET": "/tmp/caller-chose-this"})
    if os.statvfs(folder).f_flag & os.ST_NOSUID or "sanitizer" in done.stderr.lower():
        return tap.skip("a set-user-id profctl ignores PROFD_SOCKET", "not possible here")
    tap.point("caller-chose-this" not in done.stdout + done.stderr
              and "/run/profd/profd.sock" in done.stdout + done.stderr,
              "a set-user-id profctl ignores PROFD_SOCKET", done)
    os.chmod(copy, 0o755)
    done = run(*AS_NOBODY, copy, "status",
               env={**d.env, "PROFD_SOCKET": "/tmp/caller-chose-this"})
    tap.point("caller-chose-this" in done.stderr, "an ordinary one takes it", done)


def test_other_user(tap, d, exe, gmon):
    """Another user delivers to root's daemon, and sees what is his."""
    if os.geteuid() != 0:
        return tap.skip("another user delivers", "needs root")
    profctl = readable_copy(PROFCTL, d.folder)
    spool = os.path.join(d.folder, "spool-of-nobody")
    os.mkdir(spool, 0o700)
    os.chown(spool, NOBODY, NOBODY)
    env = {**d.env, "PROFD_SPOOL": spool}
    done = run(*AS_NOBODY, profctl, "upload", "-e", exe, gmon, env=env)
    tap.point(done.returncode == 0 and done.stdout.startswith("1 upload of"), "another user delivers", done)
    data = json.loads(run(*AS_NOBODY, profctl, "report", exe, "--json", env=env).stdout)
    tap.point(data["provenance"]["uploads"] == 1 and data["provenance"]["uids"] == [NOBODY], "and sees what is his",
              data["provenance"])


def test_names(tap, d, folder):
    """A program is named as `builds` prints it; where several builds have the name, each is listed."""
    exes = []
    for n, version in enumerate(("one", "two")):
        where = os.path.join(folder, version)
        os.makedirs(where)
        exe = compile_c(where, "kv-server", f"-pg -O0 -Wl,--build-id=0x{n + 1}{'a' * 39}")
        exes.append(exe)
        assert d.ctl("upload", "-l", "version=" + version, "-e", exe, profile(exe)).returncode == 0
        if version == "one":
            by_name, by_path = (d.ctl("report", a, "--json") for a in ("kv-server", exe))
            tap.point(by_name.returncode == 0 and by_name.stdout == by_path.stdout, "report of a program's name",
                      by_name)
            tap.point(d.ctl("groups", "kv-server", "--by", "version").returncode == 0, "other verbs take it, too")
    seen = [row(d, e)["last_seen"][:19] for e in exes]
    words = [w for e, v, t in zip(exes, ("one", "two"), seen) for w in (build_id(e)[:12], "version " + v, t)]
    says(tap, d.ctl("report", "kv-server"), 65, ["2 builds", *words],
         "two builds of one name: build-ids, versions and times")
    table = d.ctl("builds", "--all").stdout
    tap.point(table.startswith("PROGRAM OR LIBRARY ") and d.ctl("builds").stdout.startswith("PROGRAM "),
              "builds --all: libraries are not listed as programs", table)
    says(tap, d.ctl("report", "kv-serve"), 66, ["kv-serve", "profctl builds"], "part of a name is none")
    tap.point(d.ctl("report", build_id(exes[0])[:12]).returncode == 0, "and the advice works")
    hexadecimal = compile_c(folder, "cafe", "-pg -O0 -Wl,--build-id=0xbeef" + "b" * 36)
    other = compile_c(folder, "other", "-pg -O1 -Wl,--build-id=0xcafe" + "c" * 36)
    for exe in (hexadecimal, other):
        assert d.ctl("upload", "-e", exe, profile(exe)).returncode == 0
    found = {a: json.loads(d.ctl("report", a, "--json").stdout)["build_id"] for a in ("cafe", "cafec", "beef")}
    tap.point(found == {"cafe": build_id(hexadecimal), "cafec": build_id(other), "beef": build_id(hexadecimal)},
              "a program's name goes before the beginning of a build-id", found)
    says(tap, d.ctl("report", "dead"), 66, ["\"dead\"", "program", "build-id"],
         "what is neither: the sentence says both")


def test_without_names(tap, d, folder):
    """Nothing calls _start: without names it is not a part of main, and they are in no cycle. The advice on names
    works."""
    exe = compile_c(folder, "bare", "-O2 -g", "static volatile int n;\n__attribute__((noinline)) void leaf(int i) "
                    "{ n += i; }\nint main(void) { for (int i = 0; i < 100000000; i++) leaf(i); return 0; }\n")
    debug = exe + ".debug"
    start = int(next(s for s in run("nm", exe).stdout.splitlines() if s.endswith(" _start")).split()[0], 16)
    main = int(next(s for s in run("nm", exe).stdout.splitlines() if s.endswith(" main")).split()[0], 16)
    assert main < start, "gcc puts main in front of _start"
    assert run("objcopy", "--only-keep-debug", exe, debug).returncode == 0 and run("strip", exe).returncode == 0
    for _ in range(50):
        assert d.ctl("run", "--rate", 997, "--", exe, cwd=folder).returncode == 0
        data = json.loads(d.ctl("report", exe, "--json").stdout)
        names = {f["name"] for f in data["functions"]}
        if {hex(start), hex(main)} <= names:
            break
    tap.point({hex(start), hex(main)} <= names and not data["cycles"], "stripped: _start is not main", (data, start))
    done = d.ctl("symbols", exe)
    says(tap, done, 0, [exe, "no function names", "-dbgsym", "debuginfod-find debuginfo " + build_id(exe)],
         "symbols says where names can come from")
    tap.point(d.ctl("symbols", debug).returncode == 0 and {"main", "_start"} <= {
        f["name"] for f in json.loads(d.ctl("report", exe, "--json").stdout)["functions"]},
              "a debug file gives the names of its stripped executable", d.ctl("report", exe))


def test_executable_not_stored(tap, folder):
    """The processes that read executables are gone: counts are stored, names are not, and each verb says so."""
    exe, second = compile_c(folder, "nameless"), compile_c(folder, "unnamed")
    gmon, second_gmon = profile(exe, "nameless.gmon"), profile(second, "unnamed.gmon")
    program = shutil.copy(PROFD, os.path.join(folder, "profd"))
    with Daemon(start=False) as d:
        d.program = program
        d.start()
        os.chmod(program, 0)  # they cannot be started again
        for pid in run("pgrep", "-P", str(d.process.pid), "profd-elf").stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        done = d.ctl("upload", "-e", exe, gmon)
        done.stderr = "\n".join(split_twins(done)[1])
        says(tap, done, 75, [exe, "executable not stored", "profctl symbols"],
             "upload names the executable that is not stored, status 75")
        tap.point(done.stdout.startswith("1 upload of") and "without its executable" in done.stdout
                  and uploads(d, exe) == 1,
                  "and its summary is true", done.stdout)
        data = json.loads(d.ctl("upload", "--json", "-e", second, second_gmon).stdout)
        tap.point((data["stored"], data["executables_refused"]) == (1, 1), "upload --json", data)
        says(tap, d.ctl("symbols", exe), 75, [exe, "started again"], "so does symbols")
        done = d.ctl("run", "--", exe, cwd=folder)
        tap.point(done.returncode == 0 and re.fullmatch(
            r"profctl: run: [^\n]*(executable not stored|function names may be missing)[^\n]*\n", done.stderr),
                  "so does run in one line, and exits as its command", done)
        os.chmod(program, 0o755)
        until(lambda: d.ctl("symbols", exe).returncode == 0)
        done = d.ctl("symbols", exe)
        tap.point(done.returncode == 0 and row(d, exe)["symbols"], "the advice works", done)


with Tap() as tap, Daemon() as d:
    folder = os.path.join(d.folder, "programs")
    os.makedirs(folder)
    exe = compile_c(folder, "small")
    gmon = profile(exe, "small.gmon")
    other = compile_c(folder, "other", text="static volatile int n;\n__attribute__((noinline)) int f(int i) { int a = "
                                            "i; for (int k "
                      "= 0; k < i; k++) a = a * 31 + k % 7; return a; }\nint main(void) { n = f(9); return 0; }\n")
    stranger = compile_c(folder, "stranger", "-pg -O0 -no-pie -Wl,-Ttext-segment=0x7000000 -s")
    other_gmon = profile(other, "other.gmon")
    first, second = (compile_c(folder, f"twin{i}", f"-pg -O0 -Wl,--build-id=0xfeedface0{i}") for i in (1, 2))
    test_upload_and_report(tap, d, exe, gmon)
    test_output(tap, d, exe)
    test_many(tap, d, exe, gmon)
    test_partial_refusal(tap, d, exe, gmon, other_gmon)
    test_refusals(tap, d, exe, gmon, other, stranger)
    with Daemon() as fresh:
        test_same_layout(tap, fresh)
    for twin in (first, second):
        d.ctl("upload", "-e", twin, profile(twin))
    test_bad_questions(tap, d, exe, "feedface")
    test_stripped(tap, d, folder)
    test_no_runtime_directory(tap, folder)
    test_spool(tap, d, exe, gmon)
    test_terminal(tap, d, folder)
    test_set_user_id(tap, d, folder)
    test_other_user(tap, d, exe, gmon)
    test_names(tap, d, folder)
    test_without_names(tap, d, folder)
    test_executable_not_stored(tap, folder)
    test_http(tap, exe)
    test_library(tap, d, folder, exe, gmon)
