#!/usr/bin/python3
"""Random executables and random gmon.out files: our listing against the installed gprof's, byte for byte.

    test_gprof_random.py [CASES [FIRST_SEED [GPROF_LOCAL]]]

Each seed is one executable with up to four gmon.out files and random options. Prints TAP, one line for 20 seeds. Without a program
the one in $PROFD_BUILD is taken, and some more seeds go through the one with sanitizers where that is built.
Not generated: what gprof answers from memory it does not own (a local name ending in digits before a string that decides about
it, a last symbol without anything behind it, a call to a label in front of all functions).
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

LOCAL, GLOBAL, WEAK, UNIQUE = 0, 1, 2, 10
NOTYPE, OBJECT, FUNC, SECTION, FILE, TLS, IFUNC = 0, 1, 2, 3, 4, 6, 10
MANGLED = ["_Z3foov", "_ZN3app5Shape4areaEv", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZN12_GLOBAL__N_16hiddenEd",
           "_ZNK4math6MatrixILi3EE3detEv", "_ZplRK7ComplexS1_", "_ZZ4mainENKUlvE_clEv", "_Z1fIJidEEvDpT_", "_Znotmangled"]
WORDS = ["alpha", "beta", "gamma", "main", "parse", "eval", "walk", "f", "g", "h", "mcount", "_mcount", "__mcleanup", "_start",
         "__libc_start", "etext", "_etext", "data", "quite_a_long_function_name_of_forty_chars"]
SUFFIXES = [".0", ".123", ".1.2", ".clone.1", ".constprop.0", ".part.0", ".isra.0", ".cold", ".", ".clone.", "..1", "$x", ".a",
            ".constprop.0.1", ".clone.1.constprop.2", ".9x", ".llvm.77"]


def make_name(r, n):
    kind = r.random()
    if kind < 0.12:
        return r.choice(MANGLED)
    if kind < 0.30:
        return r.choice(WORDS)
    name = "_" * r.choice([0, 0, 0, 0, 1, 1, 2]) + r.choice(WORDS[:10]) + str(r.randrange(3 * n + 3))
    if r.random() < 0.15:
        name += r.choice(SUFFIXES)
    return name


class Executable:
    """An x86-64 ET_EXEC with sections .init, .text, .fini, .data and a symbol table."""

    def __init__(self, r):
        self.r = r
        base = r.choice([0x400000, 0x401000, 0x10000, 0x400003])
        self.sections = []  # name, flags, address, size
        at = base
        size = r.choice([64, 200, 1000, 4096, 30000])
        for name, flags, length in ((".init", 6, r.choice([0, 0, 23, 64])), (".text", 6, size), (".fini", 6, r.choice([0, 9, 300])),
                                    (".rodata", 2, 64), (".data", 3, 128)):
            if length == 0:
                continue
            at += 0x100000 if name == ".data" else 0  # its last symbol lies behind every histogram
            self.sections.append((name, flags, at, length))
            at += length + r.choice([0, 0, 1, 16, 100])
        self.code = [s for s in self.sections if s[1] & 4]
        self.low, self.high = self.code[0][2], self.code[-1][2] + self.code[-1][3]
        self.symbols = []  # name, type, bind, section index, value, size
        self.fill()

    def section_number(self, section):
        return 1 + self.sections.index(section)

    def add(self, name, kind, bind, section, value):
        number = section if isinstance(section, int) else self.section_number(section)
        self.symbols.append((name, kind, bind, number, value, self.r.choice([0, 1, 8, 40])))

    def fill(self):
        r = self.r
        n = r.choice([1, 3, 10, 30, 100, 300]) if r.random() < 0.99 else 2000
        used = []
        for _ in range(n):
            section = r.choice(self.sections if r.random() < 0.1 else self.code)
            value = r.randrange(section[2], section[2] + section[3])
            if used and r.random() < 0.2:
                section, value = r.choice(used)
            elif r.random() < 0.5:
                value = section[2] + (value - section[2]) // 16 * 16
            used.append((section, value))
            kind = r.choices([FUNC, NOTYPE, OBJECT, SECTION, FILE, IFUNC, TLS], [70, 18, 5, 2, 2, 2, 0])[0]
            bind = r.choices([LOCAL, GLOBAL, WEAK, UNIQUE], [35, 45, 18, 2])[0]
            where = section
            if r.random() < 0.03:
                where = r.choice([0, 0xfff1, 0xfff2])
                if where == 0xfff1 and bind == WEAK:
                    bind = GLOBAL
            if where == 0:
                value = 0
                bind = GLOBAL if bind == UNIQUE else bind
            name = make_name(r, n) if where == section else "nowhere%d" % r.randrange(n)
            self.add(name, FILE if kind == FILE else kind, LOCAL if kind in (FILE, SECTION) else bind,
                     0xfff1 if kind == FILE else where, 0 if kind == FILE else value)
        r.shuffle(self.symbols)
        # In front of everything stands a function; behind it a data symbol, or one address has two names.
        self.add("first", FUNC, GLOBAL, self.code[0], self.low)
        if r.random() < 0.7:
            data = self.sections[-1]
            self.add("data_start", NOTYPE, WEAK, data, data[2] + data[3])
        else:
            self.add("second", FUNC, GLOBAL, self.code[0], self.low)
        self.symbols.sort(key=lambda s: s[2] != LOCAL)

    def addresses(self):
        return [s[4] for s in self.symbols if s[4]]

    def write(self, path):
        strings = bytearray(b"\0x\0")
        table = bytearray(24)
        for name, kind, bind, number, value, size in self.symbols:
            table += struct.pack("<IBBHQQ", len(strings), bind << 4 | kind, 0, number, value, size)
            strings += name.encode() + b"\0x\0"  # gprof reads on behind a name that ends in digits
        locals_ = 1 + sum(s[2] == LOCAL for s in self.symbols)
        parts, headers, names = [], [bytes(64)], bytearray(b"\0")
        offset = 64 + 56

        def section(name, kind, flags, address, content, link=0, info=0, entry=0):
            nonlocal offset
            headers.append(struct.pack("<IIQQQQIIQQ", len(names), kind, flags, address, offset, len(content), link, info, 1, entry))
            names.extend(name.encode() + b"\0")
            parts.append(content)
            offset += len(content)

        for name, flags, address, size in self.sections:
            section(name, 1, flags, address, b"\x90" * size)
        k = len(self.sections)
        section(".symtab", 2, 0, 0, bytes(table), k + 2, locals_, 24)
        section(".strtab", 3, 0, 0, bytes(strings))
        names_header = len(names)
        names.extend(b".shstrtab\0")
        headers.append(struct.pack("<IIQQQQIIQQ", names_header, 3, 0, 0, offset, len(names), 0, 0, 1, 0))
        parts.append(bytes(names))
        offset += len(names)
        ident = b"\x7fELF\x02\x01\x01" + bytes(9)
        header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, self.low, 64, offset, 0, 64, 56, 1, 64, len(headers), len(headers) - 1)
        load = struct.pack("<IIQQQQQQ", 1, 5, 64 + 56, self.low, self.low, self.high - self.low, self.high - self.low, 1)
        with open(path, "wb") as f:
            f.write(header + load + b"".join(parts) + b"".join(headers))


class Geometry:
    def __init__(self, r, exe):
        self.rate = r.choice([1, 100, 100, 100, 1000, 999, 1000000])
        self.dimension = r.choice([b"seconds"] * 5 + [b"i-cache misses", b"ticks", b"fifteen letters"])
        self.abbreviation = r.choice([b"s"] * 4 + [b"1"]) if self.dimension == b"seconds" else self.dimension[:1]
        low, high = exe.low & ~3, (exe.high + 3) & ~3
        shape = r.random()
        if shape < 0.4:  # as glibc writes it
            self.ranges = [(low, high, max(1, ((high - low) // 2 + 7) // 8 * 4))]
        elif shape < 0.7:  # anything
            low += r.randrange(-40, 80)
            high = max(low + 2, high + r.randrange(-40, 80))
            self.ranges = [(low, high, r.randrange(1, 2 + (high - low) // r.choice([1, 2, 3, 16, 50])))]
        else:  # several ranges of one scale
            scale, self.ranges, at = r.choice([1, 2, 4, 7]), [], low
            while at < high and len(self.ranges) < 4:
                bins = r.randrange(1, 2 + (high - low) // (4 * scale))
                self.ranges.append((at, at + 2 * scale * bins, bins))
                at += 2 * scale * bins + r.choice([0, 0, 2, 30])
            r.shuffle(self.ranges)


def make_gmon(r, exe, geometry, hot):
    data = bytearray(b"gmon" + struct.pack("<I", r.choice([1, 1, 1, 0])) + bytes(12))
    records = []
    fill = r.choice([0.02, 0.2, 0.9])
    for low, high, bins in geometry.ranges * r.choice([1, 1, 1, 2]) if r.random() < 0.93 else []:
        if r.random() < 0.02:  # a record that disagrees
            low, bins = r.choice([(min(low + 2, high - 1), bins), (low, bins + 1), (low - 4, bins)])
        dimension = geometry.dimension if r.random() < 0.995 else b"bananas"
        body = struct.pack("<BQQII15s", 0, low, high, bins, geometry.rate, dimension) + geometry.abbreviation
        top = r.choice([1, 3, 100, 65535])
        ticks = [r.randint(1, top) if r.random() < fill else 0 for _ in range(bins)]
        records.append(body + struct.pack("<%dH" % bins, *ticks))
    arcs = r.choice([0, 1, 5, 30, 200, 800]) if r.random() < 0.99 else 10000
    for _ in range(arcs):
        ends = []
        for _ in range(2):
            if r.random() < 0.9:
                ends.append(r.choice(hot) + r.choice([0, 0, 1, 2, 5]))
            else:
                ends.append(max(0, r.randrange(exe.low - 50, exe.high + 300)))
        count = r.choice([0, 1, 1, 2, 3, 3, r.randrange(100), r.randrange(10 ** 6), 2 ** 32 - 1])
        records.append(struct.pack("<BQQI", 1, ends[0], ends[1], count))
    if not records:  # the reader takes a bare header for a truncated file
        records.append(struct.pack("<BQQI", 1, exe.low, exe.low, 1))
    if r.random() < 0.2:
        r.shuffle(records)
    return bytes(data + b"".join(records))


def run(command):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
    return p.returncode, p.stdout, p.stderr.decode("latin-1")


def refused_alike(theirs, ours):
    """gprof's words are the front of our sentence: "STATUS: words: values"."""
    status, _, sentence = ours[2].strip().partition(": ")
    return theirs[0] == 1 and ours[0] != 0 and ours[1] == b"" and status == "CONFLICT" and sentence.split(": ")[0] in theirs[2]


def one_case(program, seed, folder):
    """Returns None, or what went wrong; the second value tells what kind of case it was."""
    r = random.Random(seed)
    exe = Executable(r)
    exe_path = os.path.join(folder, "exe")
    exe.write(exe_path)
    geometry = Geometry(r, exe)
    hot = r.sample(exe.addresses(), min(len(exe.addresses()), r.choice([2, 5, 20, 300])))
    paths = []
    for i in range(r.choice([1, 1, 1, 2, 4])):
        paths.append(os.path.join(folder, "g%d" % i))
        if r.random() < 0.03:
            geometry.rate += 1
        with open(paths[-1], "wb") as f:
            f.write(make_gmon(r, exe, geometry, hot))
    options = r.choice([[], [], [], ["-z"], ["-P"], ["-Q"], ["-w", str(r.choice([1, 40, 61, 132]))], ["-z", "-w", "100"]])
    theirs = run(["gprof", "-b"] + options + [exe_path] + paths)
    ours = run([program] + options + [exe_path] + paths)
    if theirs[0] < 0:
        return "gprof died of signal %d (seed %d says nothing)" % (-theirs[0], seed), "died"
    if theirs[0] != 0:
        return (None if refused_alike(theirs, ours) else "gprof said %r, we %r" % (theirs[2], ours[2])), "refused"
    if ours[0] != 0:
        return "gprof printed %d bytes, we said %r" % (len(theirs[1]), ours[2]), "printed"
    if theirs[1] != ours[1]:
        a, b = theirs[1].split(b"\n"), ours[1].split(b"\n")
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        return "line %d: gprof %r, we %r" % (at + 1, a[at:at + 1], b[at:at + 1]), "printed"
    return None, "printed" if theirs[1] else "empty"


def run_blocks(program, label, first, cases, number, folder):
    """Returns the number of the last TAP line and whether all cases were right."""
    right = True
    for start in range(first, first + cases, 20):
        kinds, bad = {}, []
        block = range(start, min(start + 20, first + cases))
        for seed in block:
            problem, kind = one_case(program, seed, folder)
            kinds[kind] = kinds.get(kind, 0) + 1
            if problem:
                bad.append((seed, problem))
        number += 1
        what = ", ".join("%d %s" % (kinds[k], k) for k in sorted(kinds))
        print("%s %d - %s, seeds %d to %d: %s" % ("not ok" if bad else "ok", number, label, block[0], block[-1], what))
        for seed, problem in bad:
            print("# seed %d: %s" % (seed, problem))
        sys.stdout.flush()
        right = right and not bad
    return number, right


def main():
    build = os.environ.get("PROFD_BUILD", "build/plain")
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1982
    program = os.path.abspath(sys.argv[3] if len(sys.argv) > 3 else build + "/tests/gprof-local")
    checked = os.path.abspath(build + "-asan/tests/gprof-local")
    with tempfile.TemporaryDirectory() as folder:
        number, right = run_blocks(program, "random executables", first, cases, 0, folder)
        if len(sys.argv) <= 3 and os.path.exists(checked):
            number, right_too = run_blocks(checked, "with sanitizers", first + cases, 60, number, folder)
            right = right and right_too
    print("1..%d" % number)
    sys.exit(0 if right else 1)


main()
