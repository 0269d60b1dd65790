# not a test
"""gprof reads past the end of a symbol's name when that ends in a number (`sweep.constprop.0`): what stands next in the string
table then decides whether the symbol is kept. We give the defined answer. To compare the rest, names are set apart here."""
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


def accepted(name):
    """gprof's rule for a local symbol's name: dots begin numbers, .clone.N or .constprop.N."""
    return re.fullmatch(rb"[^.$]*((\.clone|\.constprop)?\.\d+)*", name) is not None


def endangered(path):
    """Names of code symbols whose fate gprof lets their neighbour decide."""
    with open(path, "rb") as f:
        data = f.read()
    (offset, size), (names, length, _) = symbol_table(data)
    strings, out = data[names:names + length], set()
    for at in range(offset, offset + size, 24):
        where, info = struct.unpack_from("<IB", data, at)
        end = strings.index(b"\0", where)
        name = strings[where:end]
        if info >> 4 == STB_LOCAL and info & 15 in (0, 2) and re.search(rb"\.\d+$", name) and accepted(name):
            following = strings[end + 1:(strings + b"\0").index(b"\0", end + 1)]
            if following and not accepted(following):
                out.add(name.decode("latin-1"))
    return sorted(out)


def set_apart(path, out):
    """A copy of an executable whose symbol names are each followed by an empty one; nothing else differs."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    (offset, size), (names, length, header) = symbol_table(data)
    strings, table, places = bytes(data[names:names + length]), bytearray(b"\0\0"), {b"": 0}
    for at in range(offset, offset + size, 24):
        where, = struct.unpack_from("<I", data, at)
        name = strings[where:strings.index(b"\0", where)]
        if name not in places:
            places[name] = len(table)
            table += name + b"\0\0"
        struct.pack_into("<I", data, at, places[name])
    struct.pack_into("<QQ", data, header + 24, len(data), len(table))
    with open(out, "wb") as f:
        f.write(data + table)
    os.chmod(out, 0o755)
    return out
