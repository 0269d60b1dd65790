#!/usr/bin/python3
"""Memory of `profctl gprof` on small files that claim much: never above 64 MiB + 16 times the input, as address space;
by line, where each byte of code may be a line of its own, 64 MiB + 128 times. A 317-byte gmon.out costs gprof 16.8 GB.
Whatever is said of the files, it is said in a sentence and with an exit status of its own."""
import os
import resource
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import PROFCTL, Tap  # noqa: E402

LOW = 0x400000
MIB = 1 << 20


def uleb(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def elf(sections=(), symbols=(), strings=b"\0f\0", text=4096, symtab_size=None):
    """An executable with .text, a symbol table of (offset of the name, address, size), and other sections."""
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", n, 0x12, 0, 1, a, s) for n, a, s in symbols or [(1, LOW, 16)])
    parts = [(".text", 1, 6, LOW, b"\x90" * text, 0, 0, 0), (".symtab", 2, 0, 0, table, 3, 1, 24),
             (".strtab", 3, 0, 0, strings, 0, 0, 0)]
    parts += [(name, 1, 0, 0, content, 0, 0, 0) for name, content in sections]
    names = b"\0" + b"".join(p[0].encode() + b"\0" for p in parts) + b".shstrtab\0"
    parts.append((".shstrtab", 3, 0, 0, names, 0, 0, 0))
    at, headers, body = 64, bytes(64), b""
    for name, kind, flags, address, content, link, info, entry in parts:
        size = symtab_size if name == ".symtab" and symtab_size else len(content)
        headers += struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), kind, flags, address, at + len(body),
                               size, link, info, 1, entry)
        body += content
    ident = b"\x7fELF\2\1\1" + bytes(9)
    return (ident + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, LOW, 0, at + len(body), 0, 64, 0, 0, 64, len(parts) + 1,
                                len(parts)) + body + headers)


def histogram(low, high, bins, counts=b""):
    return b"\0" + struct.pack("<QQII", low, high, bins, 100) + b"seconds".ljust(15, b"\0") + b"s" + counts


def gmon(*records):
    return b"gmon" + struct.pack("<I", 1) + bytes(12) + b"".join(records)


def arc(a, b):
    return b"\1" + struct.pack("<QQI", a, b, 1)


def dwarf(entries, kinds, strings=b"\0", lines=None, ranges=b""):
    """Sections of one unit of DWARF 4, with a line of its own for every address of .text."""
    unit = struct.pack("<HIB", 4, 0, 8) + b"\1" + struct.pack("<IQQB", 0, LOW, 4096, 12) + entries
    head = (struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
            + b"\0a.c\0\0\0\0\0")
    program = b"\0\x09\2" + struct.pack("<Q", LOW) + (lines or bytes([13 + 14 + 6]) * 4096) + b"\0\1\1"
    table = struct.pack("<HI", 4, len(head)) + head + program
    return ((".debug_info", struct.pack("<I", len(unit)) + unit),
            (".debug_abbrev", b"\1\x11\1\x10\x17\x11\1\x12\7\x13\x0b\0\0" + kinds + b"\0"),
            (".debug_line", struct.pack("<I", len(table)) + table), (".debug_str", strings), (".debug_ranges", ranges))


def cases():
    few = gmon(histogram(LOW, LOW + 4096, 8, struct.pack("<8H", *range(8))), *(arc(LOW + i, LOW) for i in range(11)))
    plain, many = elf(), range(100000)
    copies = b"\2\x1d\0\x03\x0e\x55\x17\0\0"  # a name in .debug_str, a list of ranges
    named = b"\2\x2e\0\x03\x0e\x11\1\x12\x0b\0\0"
    lists = struct.pack("<QQ", 1, 2) * 5000 + bytes(16)
    yield "a file of 317 bytes with 4,294,967,295 bins", plain, gmon(histogram(LOW, LOW + 4096, 0xffffffff,
            bytes(256))), []
    yield "a last record with as many bins", plain, few + histogram(LOW, LOW + 4096, 0xffffffff), []
    yield "a range of all addresses in one bin", plain, gmon(histogram(0, 2 ** 64 - 16, 1, b"\1\0")), []
    yield "10,000 histograms without bins", plain, gmon(*(histogram(LOW + 16 * i, LOW + 16 * i + 16, 0)
            for i in many[:10000])), []
    yield "500,000 bins", plain, gmon(histogram(LOW, LOW + 1000000, 500000, b"\1\0" * 500000)), ["-z"]
    yield "100,000 arcs", plain, gmon(*(arc(LOW + i % 4096, LOW + i // 64) for i in many)), ["-z"]
    yield "100,000 arcs among 4,096 functions", elf(symbols=[(1, LOW + i, 1) for i in range(4096)]), \
        gmon(*(arc(LOW + i % 4096, LOW + i * 7 % 4093) for i in many)), []
    yield "a basic-block record that claims 4,294,967,295", plain, gmon(b"\2\xff\xff\xff\xff" + bytes(64)), []
    yield "a symbol table that claims 2^60 bytes", elf(symtab_size=2 ** 60), few, []
    yield "a symbol table that claims 4 GiB", elf(symtab_size=2 ** 32), few, []
    yield "60,000 section headers that are not there", plain[:60] + struct.pack("<HH", 60000, 5), few, []
    yield "20,000 symbols that share one name of 300,000 bytes", elf(symbols=[(1 + i, LOW + i % 4096, 0)
            for i in range(20000)],
                                                                    strings=b"\0" + b"x" * 300000 + b"\0"), few, ["-z"]
    yield "20,000 copies that share a list of 5,000 ranges", elf(
            dwarf(b"".join(b"\2" + bytes(8) for _ in range(20000)), copies, ranges=lists)), few, ["-l"]
    yield "20,000 functions that share one name of 300,000 bytes", \
        elf(dwarf(b"".join(b"\2" + struct.pack("<IQB", i, LOW + i % 4096, 1) for i in range(20000)), named,
                  b"x" * 300000 + b"\0")), few, ["-l", "-z"]
    yield "entries of no bytes with 10,000 attributes", elf(dwarf(b"\2" * 20000,
            b"\2\x2e\0" + b"\x3f\x19" * 10000 + b"\0\0")), few, ["-l"]
    yield "300,000 lines", elf(dwarf(b"", b"", lines=bytes([13 + 14 + 6, 13 + 14 + 4]) * 150000),
                               text=MIB), few, ["-l", "-z"]


def measure(options, names, folder, limit):
    """Exit status, output's size, messages, and the largest memory resident, in bytes."""
    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([PROFCTL, "gprof", "-b"] + options + names, cwd=folder, stdout=out, stderr=err,
                                 stdin=subprocess.DEVNULL, preexec_fn=limits)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        return child.returncode, out.seek(0, 2), err.read(2000).decode("latin-1"), usage.ru_maxrss * 1024


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        for name, executable, profile, options in cases():
            for file, content in (("exe", executable), ("counts", profile)):
                with open(os.path.join(folder, file), "wb") as f:
                    f.write(content)
            size = len(executable) + len(profile)
            limit = 64 * MIB + (128 if "-l" in options else 16) * size
            status, printed, said, resident = measure(options, ["exe", "counts"], folder, limit)
            good = (status in (0, 1, 65, 69) and (printed > 0 or said != "") and "out of memory" not in said
                    and "no memory" not in said)
            tap.point(good, f"{name}: {size} bytes, at most {limit // MIB} MiB",
                      f"exit status {status}, {printed} bytes printed, {said[:300]!r}")
            print(f"# {resident // 1024} KiB resident, exit status {status}, {said[:100].strip()!r}")


main()
