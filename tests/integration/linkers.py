#!/usr/bin/python3
"""Lists for linkers, each read by ld.lld: the order of functions in the program that it links is the one asked for."""
import os
import sys

sys.dont_write_bytecode = True
from harness import Daemon, Tap, profile, run, symbols, until  # noqa: E402

# Hot functions lie apart, with code that never runs between them: loop calls hot1, which calls hot2.
COLD = "\n".join(f"OWN void cold{{n}}_{i}(void) {{{{ n += {i}; n *= n; n ^= {i} + n; n *= 3; }}}}" for i in range(40))
SOURCE = ("static volatile long n;\n#define OWN __attribute__((noinline))\n" + COLD.format(n=0) + """
OWN void hot2(void) { n++; }
""" + COLD.format(n=1) + """
OWN void rare(void) { n--; }
""" + COLD.format(n=2) + """
OWN void hot1(void) { n ^= 1; hot2(); n ^= 1; }
""" + COLD.format(n=3) + """
OWN void loop(void) { for (int i = 0; i < 30000; i++) hot1(); }
int main(int argc, char **argv) { (void)argv; loop(); rare(); if (argc > 1) { """
          + " ".join(f"cold{n}_{i}();" for n in range(4) for i in range(40)) + " } return 0; }\n")
TWIN = """static volatile long m;
__attribute__((noinline)) static void twin(void) { m++; }
void NAME(void) { twin(); twin(); m++; }
"""


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def build(d, out, *options):
    done = run("gcc", "-pg", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-ffunction-sections", "-o", out,
               *options)
    assert done.returncode == 0, done.stderr
    return out, done.stderr


def entries(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def linked(d, source, option, text):
    """name → address in a program that ld.lld linked with the list."""
    path = write(os.path.join(d.folder, "list"), text)
    out = os.path.join(d.folder, "ordered")
    _, said = build(d, out, source, "-fuse-ld=lld", f"-Wl,{option}={path}")
    return {name: address for name, (address, size) in symbols(out).items()}, said


def test_order(tap, d, source, exe):
    done = d.ctl("report", exe, "-f", "symbol-order")
    names = entries(done.stdout)
    tap.point(names == ["main", "rare", "loop", "hot1", "hot2"], "symbol-order: what ran, callees behind their callers",
              done)
    build_id = d.json("report", exe, "--json")["build_id"]
    tap.point("# Calls: exact" in done.stdout and f"# Build: {build_id}" in done.stdout
              and "100.00 % of them" in done.stdout, "symbol-order: says whose calls, and that they are exact",
              done.stdout)
    at, said = linked(d, source, "--symbol-ordering-file", done.stdout)
    tap.point(said == "" and [n for n in sorted(at, key=at.get) if n in names] == names,
              "ld.lld reads it, and lays the functions in its order", f"{said}\n{done.stdout}")
    tap.point(max(at[n] for n in names) < min(a for n, a in at.items() if n.startswith("cold")),
              "no code that never ran lies between them", at)


def test_twins(tap, d):
    parts = [write(os.path.join(d.folder, f"{name}.c"), TWIN.replace("NAME", name)) for name in ("left", "right")]
    main = write(os.path.join(d.folder, "twins.c"),
                 "void left(void), right(void); int main(void) { left(); right(); return 0; }\n")
    exe, _ = build(d, os.path.join(d.folder, "twins"), main, *parts)
    assert d.ctl("run", exe).returncode == 0
    until(lambda: d.ctl("report", exe).returncode == 0)
    order = d.ctl("report", exe, "-f", "symbol-order").stdout
    tap.point("twin" not in entries(order) and "not unique: 2" in order,
              "a name of two functions is left out, and counted", order)
    tap.point("# Calls between functions: 7, 28.57 % of them" in order, "the share of calls in the list is stated",
              order)


def test_uncounted(tap, d):
    """Linked with -pg and compiled without: its gmon.out has ticks and no calls."""
    exe, code = os.path.join(d.folder, "plain"), os.path.join(d.folder, "plain.o")
    source = write(os.path.join(d.folder, "plain.c"),
                   "int main(void) { volatile long n = 0; while (n < 300000000) n++; return 0; }\n")
    assert run("gcc", "-O1", "-c", "-o", code, source).returncode == 0
    assert run("gcc", "-pg", "-o", exe, code).returncode == 0
    assert d.ctl("upload", "-e", exe, profile(d.folder, exe, [], 1)).returncode == 0
    done = d.ctl("report", exe, "-f", "symbol-order")
    tap.point(done.returncode == 64 and done.stdout == ""
              and "--format symbol-order needs counted calls" in done.stderr,
              "refused where no call is counted", done)


with Tap() as tap, Daemon() as d:
    source = write(os.path.join(d.folder, "p.c"), SOURCE)
    exe, _ = build(d, os.path.join(d.folder, "p"), source)
    assert d.ctl("run", exe).returncode == 0
    until(lambda: d.ctl("report", exe).returncode == 0)
    test_order(tap, d, source, exe)
    test_twins(tap, d)
    test_uncounted(tap, d)
