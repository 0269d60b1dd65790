#!/usr/bin/python3
"""Call sites rewritten at start: the same counts, whatever form the calls have and whoever forbids it; off and on while
threads run."""
import ctypes
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bed import COLLECT, COLLECT_STATIC, HERE, ROOT, Bed, Tap, difference, run  # noqa: E402


def rewritten(bed, **more):
    return bed.env(PROFD_REWRITE=1, **more)


def own(bed, processes):
    mine = [p for p in processes if p.pid == bed.pid and p.raw.get("modules")]
    return max(mine, key=lambda p: sum(p.calls().values()), default=None) # one that became another has two


def check(tap, bed, name, exe, *arguments, printed, exact=True, only=None, env=None):
    """Runs it: it must print that, and each call must be there once. only: functions whose calls must all be there,
    others at most."""
    p = own(bed, bed.run(exe, *arguments, env=env or rewritten(bed)))
    tap.point(bed.returncode == 0 and bed.out.split() == printed.split(), f"{name}: {printed}",
              (bed.returncode, bed.out, bed.err))
    truth = bed.truth(bed.pid)
    off = difference(truth, p.calls()) if p and not p.failed else {"attached": (1, 0)}
    if only:
        off = {f: v for f, v in off.items() if f in only or v[1] > v[0]}
    tap.point(sum(truth.values()) > 0 and not off and p["exact"] == exact, f"{name}: counts ({sum(truth.values())})",
              (off, p and p["exact"]))
    bed.forget_truth()
    return p


FORMS = [("gcc", ["-pg"]), ("gcc", ["-pg", "-no-pie", "-fno-pie"]), ("gcc", ["-pg", "-fno-plt", "-Wl,-z,now"]),
         ("gcc", ["-pg", "-mfentry"]),
         ("gcc", ["-pg", "-mfentry", "-no-pie", "-fno-pie"]), ("gcc", ["-pg", "-O0"]),
         ("gcc", ["-pg", "-Os", "-no-pie", "-fno-pie"]),
         ("gcc", ["-pg", "-fcf-protection=full", "-fstack-clash-protection", "-fstack-protector-all",
                  "-Wl,-z,ibtplt"]), ("clang", ["-pg"]),
         ("clang", ["-pg", "-O0"]), ("clang", ["-pg", "-mfentry"]), ("clang", ["-pg", "-no-pie", "-fno-pie"]),
         ("gcc", ["-pg", "-fuse-ld=gold"])]


def forms(tap, bed):
    for compiler, options in FORMS:
        exe = bed.build("rewrite.c", *options, compiler=compiler, name="form")
        name = " ".join([compiler, *options])
        check(tap, bed, name, exe, "forms", 1, 20000, printed="thunk off thunk", exact=False)
        check(tap, bed, name + ", not asked to", exe, "forms", 1, 100, printed=form_plain(options, compiler),
              exact=False, env=bed.env(PROFD_REWRITE=0))
    for options in (["-pg"], ["-pg", "-static"], ["-pg", "-static-pie", "-fPIE"], ["-pg", "-mfentry", "-static"]):
        exe = bed.build("rewrite.c", *options, name="linked", libraries=[COLLECT_STATIC, "-ldl", "-pthread"])
        for mode, printed in (("forms", "thunk off thunk"), ("toggle", "thunk")):
            check(tap, bed, f"the archive, {' '.join(options)}", exe, mode, 4, 5000, printed=printed, exact=False,
                  only=("late",) if mode == "toggle" else None, env=bed.env(False, PROFD_REWRITE=1, SWITCHES=100))


def form_plain(options, compiler):
    word = "call" if compiler == "clang" or "-no-pie" in options else "got"
    return f"{word} {word} {word}"


def many(bed, path):
    """More functions than there are thunks: each counts as leaf and says so by its name."""
    with open(path, "w", encoding="utf-8") as f:
        f.write('#include "truth.h"\nuint64_t (*truth)[TRUTH_FUNCTIONS];\n__thread unsigned truth_slot;\nextern int '
                'moncontrol(int);\n')
        f.write("".join(f"__attribute__((noinline)) void f{i}(void) {{ COUNT(leaf); }}\n" for i in range(700)))
        f.write("static void (*const all[])(void) = {" + "".join(f"f{i}," for i in range(700)) + "};\n")
        f.write("""QUIET int main(int argc, char **argv) {
            truth_open();
            long n = atol(argv[1]);
            for (long i = 0; i < n; i++) all[i % 700]();
            moncontrol(0);
            for (long i = 0; i < n; i++) all[i % 700]();
            truth[0][T_leaf] -= (uint64_t)n;
            const uint8_t *b = (const uint8_t *)(void *)f0;
            while (*b != 0xa9 && *b != 0xff && b < (const uint8_t *)(void *)f0 + 30) b++;
            puts(*b == 0xa9 ? "off" : "got");
            moncontrol(1);
            for (long i = 0; i < n; i++) all[i % 700]();
            return argc != 2;
        }\n""")


def large(tap, bed):
    source = os.path.join(bed.folder, "many.c")
    many(bed, source)
    for options in (["-pg"], ["-pg", "-mfentry"], ["-pg", "-no-pie", "-fno-pie"],
                    ["-pg", "-fno-asynchronous-unwind-tables"]):
        exe = bed.build(source, *options, name="many")
        p = own(bed, bed.run(exe, 700000, env=rewritten(bed)))
        counts = [n for f, n in p.calls().items() if re.fullmatch(r"f\d+", f)]
        without = "-fno-asynchronous-unwind-tables" in options
        tap.point(bed.out == ("got\n" if without else "off\n") and len(counts) == 700 and set(counts) == {2000},
                  f"700 functions, {' '.join(options)}: {'left as they are, ' if without else ''}each has its calls",
                  (bed.out, len(counts), set(counts)))
        bed.forget_truth()


def threads(tap, bed, exe):
    for n in (1, 4, 16):
        check(tap, bed, f"1,500 times off and on under {n} threads", exe, "toggle", n, 20000, printed="thunk",
              exact=False, only=("late",))
    check(tap, bed, "switched by a signal handler on any instruction", exe, "storm", 1, 300000, printed="thunk",
          exact=False, only=("late",))
    check(tap, bed, "SIGTRAP stays the program's own, blocked or not", exe, "trap", 1, 1, printed="good", exact=False,
          only=("nothing",))
    seen = bed.run(exe, "forks", 40, 1000, env=rewritten(bed))
    children = [p for p in seen if p.pid != bed.pid]
    wrong = [p.calls() for p in children if p.calls()["late"] != 1000 or p.calls()["outer"] != 1 or p.failed]
    tap.point(bed.out == "good\n" and len(children) == 40 and not wrong,
              "40 children of a process that another thread switches all the time",
              (bed.out, len(children), wrong[:3]))
    bed.forget_truth()


def plugins(tap, bed, exe):
    bed.build("plugin.c", "-pg", "-shared", "-fPIC", "-DNAME=plugin_a", "-DWHICH=T_plugin_a", "-DREPEAT=3",
              name="libplugin_a.so")
    p = check(tap, bed, "a library that comes and goes", exe, "plugin", 0, 1000,
              printed="thunk off thunk off thunk off good", exact=False)
    tap.point(p.calls()["plugin_a_inner"] == 3 * 3 * 1002, "inside it, too", p.calls())
    check(tap, bed, "one that comes when there are threads stays as it is", exe, "plugin", 1, 1000,
          printed="thunk off thunk off got got good", exact=False)
    late = bed.build("plugin.c", "-pg", "-shared", "-fPIC", "-fuse-ld=bfd", "-Wl,-z,lazy", "-DNAME=plugin_a",
                     "-DWHICH=T_plugin_a", "-DREPEAT=3", "-Wl,--build-id=none", name="libplugin_a.so")
    check(tap, bed, "without a build-id", exe, "plugin", 0, 1000, printed="thunk off thunk off thunk off good",
          exact=False)
    os.unlink(late)


def refused(tap, bed, exe):
    has_mdwe = ctypes.CDLL(None).prctl(66, 0, 0, 0, 0) >= 0 # PR_GET_MDWE
    for how, what in (("mdwe", "new code is forbidden by the kernel"), ("exec", "mprotect(PROT_EXEC) is refused"),
                      ("both", "code that can be written is refused")):
        if how == "mdwe" and not has_mdwe:
            tap.skip(f"{what}: calls stay, and are counted", "needs PR_SET_MDWE (Linux 6.3)")
            continue
        check(tap, bed, f"{what}: calls stay", exe, "confined", how, "forms", 1, 20000, printed="got got got",
              exact=False)
    check(tap, bed, "protection can be changed no more: off is off all the same", exe, "locked", 1, 20000,
          printed="thunk thunk", exact=False)


def data(tap, bed, exe):
    p = own(bed, bed.run(exe, "tricks", 1, 5000, env=rewritten(bed)))
    tap.point(bed.out.split() == ["thunk", "got", "thunk", "good"],
              "data that looks like a call, in functions and between them, is not touched", (bed.out, bed.err))
    tap.point(all(p.calls()[f"trick_{n}"] == 5000 for n in ("one", "two", "three")) and p["exact"],
              "and the calls beside it are counted", p.calls())
    bed.forget_truth()


def registers(tap, bed, exe):
    for options, form in (([], "thunk"), (["-DMANY"], "call")):
        bed.build("registers.c", "-shared", "-fPIC", *options, name="libregisters.so")
        bed.run(exe, "registers", env=rewritten(bed))
        tap.point(bed.out.split() == [form, form, "good"], f"no vector, mask, x87 or general register changes in "
                  f"rewritten calls ({form})", (bed.returncode, bed.out, bed.err))
        bed.forget_truth()


def lengths(tap, bed):
    """The length decoder beside the disassembler, over functions of real programs and random bytes."""
    driver = bed.build("decode.c", "-I" + ROOT, os.path.join(ROOT, "client", "collect", "rewrite_decode.c"),
                       libraries=[], name="decode")
    seen, wrong, known = 0, [], 0
    for path in (os.path.realpath("/bin/bash"), os.path.realpath("/usr/lib/x86_64-linux-gnu/libm.so.6"),
                 os.path.realpath("/usr/lib/x86_64-linux-gnu/libc.so.6")):
        rows = [(m.group(1).replace(" ", ""), m.group(2)) for m in
                re.finditer(r"^\s+[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*\t(\S+)", run("objdump", "-d", "-w", path).stdout,
                            re.M)]
        rows = random.Random(5).sample(rows, min(len(rows), 40000))
        listing = os.path.join(bed.folder, "code")
        with open(listing, "w", encoding="utf-8") as f:
            f.write("".join(code + "\n" for code, _ in rows))
        answers = run("sh", "-c", f"exec {driver} < {listing}").stdout.split()
        for (code, name), answer in zip(rows, answers):
            seen += 1
            known += answer != "0"
            if int(answer) not in (0, len(code) // 2) or (answer != "0"
                    and re.match(r"(bnd |notrack )?(call|jmp|ret|hlt|ud2|int3|syscall)", name)):
                wrong.append((code, name, answer))
    tap.point(seen > 60000 and not wrong and known > 0.8 * seen,
              f"lengths of {seen} instructions as the disassembler has them, {known} known", wrong[:10])


def main():
    with Tap() as tap, Bed() as bed:
        if os.uname().machine != "x86_64":
            tap.skip("call sites rewritten", "x86-64 only")
            return
        exe = bed.build("rewrite.c", "-pg")
        forms(tap, bed)
        large(tap, bed)
        threads(tap, bed, exe)
        plugins(tap, bed, bed.build("rewrite.c", "-pg", "-rdynamic", name="dynamic"))
        refused(tap, bed, exe)
        data(tap, bed, exe)
        registers(tap, bed, exe)
        lengths(tap, bed)


main()
