"""Large executables and gmon.out files of a wanted shape, written byte by byte: no compiler is asked, a million
functions take seconds. Nothing in them can run; a reader of symbols and counts cannot tell."""
import array
import hashlib
import os
import random
import struct
import sys

SIZE = 16          # bytes of a function
TEXT = 0x401000    # address of the first, main
BIN = 4            # bytes a tick's bin covers


def address(number):
    """Of function number 0 … N−1; main is in front of them."""
    return TEXT + SIZE * (number + 1)


def notes():
    return struct.pack("<III4s", 4, 20, 3, b"GNU\0")


def executable(folder, functions):
    """An x86-64 ELF file with main and f0000000 … behind it, linked with -pg, without DWARF; its path."""
    path = os.path.join(folder, f"shape{functions}")
    names = b"\0main\0" + b"".join(b"f%07d\0" % i for i in range(functions)) + b"__monstartup\0"
    text = b"\x90" * (SIZE - 1) + b"\xc3"
    code = text * (functions + 1)
    one = struct.Struct("<IBBHQQ").pack
    symbols = one(0, 0, 0, 0, 0, 0) + one(1, 0x12, 0, 2, TEXT, SIZE)
    symbols += b"".join([one(6 + 9 * i, 0x12, 0, 2, TEXT + SIZE * (i + 1), SIZE) for i in range(functions)])
    symbols += one(6 + 9 * functions, 0x12, 0, 0, 0, 0)  # undefined: linked with -pg, else no gmon.out is its own
    note = notes() + hashlib.sha1(symbols).digest()
    titles = b"\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab\0"
    parts = [(b".note.gnu.build-id", 7, 2, 0x400200, note, 0, 0, 4, 0), (b".text", 1, 6, TEXT, code, 0, 0, 16, 0),
             (b".symtab", 2, 0, 0, symbols, 4, 1, 8, 24), (b".strtab", 3, 0, 0, names, 0, 0, 1, 0),
             (b".shstrtab", 3, 0, 0, titles, 0, 0, 1, 0)]
    offsets, at = [], 0x200
    for part in parts:
        at = 0x1000 if part[0] == b".text" else at
        offsets.append(at)
        at += (len(part[4]) + 15) & ~15
    with open(path, "wb") as f:
        f.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, at, 0, 64, 56, 2, 64,
                6, 5))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 0x1000 + len(code), 0x1000 + len(code), 0x1000))
        f.write(struct.pack("<IIQQQQQQ", 4, 4, 0x200, 0x400200, 0x400200, len(note), len(note), 4))
        for offset, part in zip(offsets, parts):
            f.seek(offset)
            f.write(part[4])
        f.seek(at)
        f.write(bytes(64))
        for offset, (name, kind, flags, where, data, link, info, align, entry) in zip(offsets, parts):
            f.write(struct.pack("<IIQQQQIIQQ", titles.index(name), kind, flags, where, offset, len(data), link, info,
                                align, entry))
    os.chmod(path, 0o755)
    return path


def planes(into, first, step, column, width):
    """Lays the bytes of a column of numbers into records of step bytes."""
    if sys.byteorder != "little":
        column.byteswap()
    data = column.tobytes()
    for k in range(width):
        into[first + k::step] = data[k::width]


def profile(path, functions, callers, callees, calls, ticks):
    """gmon.out with an arc for each caller, callee and calls (function numbers, −1 is main), and so many ticks on each
    function."""
    end = TEXT + SIZE * (functions + 1)
    bins = array.array("H", bytes(2 * ((end - TEXT) // BIN)))
    for i, n in enumerate(ticks):
        bins[(i + 1) * SIZE // BIN] = n
    head = (b"gmon" + struct.pack("<I12x", 1) + b"\0" + struct.pack("<QQII15sc", TEXT, end, len(bins), 100, b"seconds",
            b"s"))
    with open(path, "wb") as f:
        f.write(head)
        f.write(bins.tobytes())
        for start in range(0, len(calls), 1 << 20):
            part = slice(start, start + (1 << 20))
            records = bytearray(b"\1" * (21 * len(calls[part])))
            planes(records, 1, 21, array.array("Q", [TEXT + SIZE * (v + 1) + 5 for v in callers[part]]), 8)
            planes(records, 9, 21, array.array("Q", [TEXT + SIZE * (v + 1) for v in callees[part]]), 8)
            planes(records, 17, 21, array.array("I", calls[part]), 4)
            f.write(records)
    return path


def numbers(seed, count, below):
    """So many random numbers."""
    raw = array.array("I", random.Random(seed).randbytes(4 * count))
    return [v * below >> 32 for v in raw]


def giant_cycle(functions, arcs, seed=1):
    """A ring through all functions and random arcs besides: one cycle."""
    more = arcs - functions
    callers = list(range(functions)) + numbers(seed, more, functions)
    callees = list(range(1, functions)) + [0] + numbers(seed + 1, more, functions)
    return callers, callees, [1 + n for n in numbers(seed + 2, arcs, 1000)], numbers(seed + 3, functions, 60)


def layered(functions, arcs, seed=1, shuffled=False):
    """Arcs that lead downwards, to functions near and far, and one in a thousand that leads back: cycles of all sizes.
    In the order of callers, as glibc writes them, or in none."""
    callers, spans = numbers(seed, arcs, functions), numbers(seed + 1, arcs, 1 << 20)
    if not shuffled:
        callers.sort()
    callees = [min(functions - 1, v + 1 + (functions >> (s & 15) + 1) * (s >> 4) // 65536) if s % 1000
               else v - (s >> 10) % 50
               for v, s in zip(callers, spans)]
    callees = [max(0, v) for v in callees]
    return callers, callees, [1 + n for n in numbers(seed + 2, arcs, 1000)], numbers(seed + 3, functions, 60)


def fan_in(functions):
    return list(range(1, functions)), [0] * (functions - 1), [1 + i % 97 for i in range(functions - 1)], [1 + i % 7
            for i in range(functions)]


def fan_out(functions):
    return [0] * (functions - 1), list(range(1, functions)), [1 + i % 97 for i in range(functions - 1)], [1 + i % 7
            for i in range(functions)]


def chain(functions):
    return list(range(functions - 1)), list(range(1, functions)), [1] * (functions - 1), [1] * functions
