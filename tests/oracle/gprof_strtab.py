# not a test
"""gprof reads past the end of a local symbol's name when that ends in digits (`sweep.constprop.0`): what stands next in
the string table then decides whether the symbol is listed. Here: which names of a program these are, and copies of it
with other neighbours."""
import os
import re
import struct

STB_LOCAL = 0


def sections(data):
    """[(type, offset, size, link)] of a 64-bit little-endian ELF file, and where each header stands."""
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    out = []
    for i in range(count):
        _, kind, _, _, offset, length, link = struct.unpack_from("<IIQQQQI", data, at + i * size)
        out.append((kind, offset, length, link, at + i * size))
    return out


def symbol_table(data):
    """(offset, size) of .symtab, (offset, size, header) of its names."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    table = sections(data)
    kind, offset, size, link, _ = next(s for s in table if s[0] == 2)
    return (offset, size), (table[link][1], table[link][2], table[link][4])


def read_past(path):
    """Names of local code symbols about which their neighbours decide."""
    with open(path, "rb") as f:
        data = f.read()
    (offset, size), (names, length, _) = symbol_table(data)
    strings, out = data[names:names + length], set()
    for at in range(offset, offset + size, 24):
        where, info = struct.unpack_from("<IB", data, at)
        name = strings[where:strings.index(b"\0", where)]
        # Dots begin numbers, .clone.N or .constprop.N.
        if info >> 4 == STB_LOCAL and info & 15 in (0, 2) and re.fullmatch(rb"[^.$]*((\.clone|\.constprop)?\.\d+)+",
                name):
            out.add(name.decode("latin-1"))
    return sorted(out)


def give_neighbour(path, out, neighbour):
    """A copy of an executable in which that string follows the name of each symbol; nothing else differs."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    (offset, size), (names, length, header) = symbol_table(data)
    strings, table, places = bytes(data[names:names + length]), bytearray(b"\0\0"), {b"": 0}
    for at in range(offset, offset + size, 24):
        where, = struct.unpack_from("<I", data, at)
        name = strings[where:strings.index(b"\0", where)]
        if name not in places:
            places[name] = len(table)
            table += name + b"\0" + neighbour + b"\0"
        struct.pack_into("<I", data, at, places[name])
    struct.pack_into("<QQ", data, header + 24, len(data), len(table))
    with open(out, "wb") as f:
        f.write(data + table)
    os.chmod(out, 0o755)
    return out
