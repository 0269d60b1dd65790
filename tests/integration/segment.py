# not a test
"""Uploads of a host as profd-protocol(7) specifies them: a reader that shares nothing with profd's own."""
import ctypes
import hashlib
import struct

KINDS = ("counts", "withdrawn", "dropped")
HOUR = 3600 * 10**9
NOWHERE = None


class Bad(ValueError):
    pass


def inflate(frame, size):
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size + 1)
    got = lib.ZSTD_decompress(out, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame)))
    if got != size:
        raise Bad(f"{got} bytes of content, {size} stated")
    return out.raw[:size]


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def numbers(self, n):
        return [self.number() for _ in range(n)]

    def signed(self):
        n = self.number()
        return n >> 1 ^ -(n & 1)

    def take(self, n):
        data = self.data[self.at:self.at + n]
        if len(data) != n:
            raise Bad("too short")
        self.at += n
        return data

    def text(self):
        return self.take(self.number()).decode()

    def column(self, n):
        out = []
        while len(out) < n:
            count = min(4096, n - len(out))
            planes = [self.take(count) for _ in range(self.take(1)[0])]
            out += [sum(plane[i] << 8 * k for k, plane in enumerate(planes)) for i in range(count)]
        return out

    def places(self):
        """(build, address) of each place."""
        count, runs = self.numbers(2)
        heads = [self.numbers(3) for _ in range(runs)]
        gaps, out = iter(self.column(count)), []
        for length, build, address in heads:
            for _ in range(length):
                address = (address + next(gaps)) % 2**64
                out.append((NOWHERE if build == 0 else build - 1, address))
        if len(out) != count:
            raise Bad("places")
        return out

    def end(self):
        if self.at != len(self.data):
            raise Bad("surplus bytes")


def unzigzag(n):
    return n >> 1 ^ -(n & 1)


def ascending(differences):
    out, at = [], 0
    for d in differences:
        at += unzigzag(d)
        out.append(at)
    return out


def arcs(r, s, n, ordered):
    callers = r.places()
    callers = [callers[i] for i in ascending(r.column(n))]
    callees = r.places()
    callees = [callees[i] for i in r.column(n)]
    if ordered:
        first, commits, ranks = r.number(), r.column(n), ascending(r.column(n))
        if first or any(commits) or sorted(ranks) != list(range(n)):
            raise Bad("the order of a sum's arcs")
        if [(a, b) for a, b in zip(callers, callees)] != sorted(
                zip(callers, callees), key=lambda arc: [x for b, a in arc for x in (2**32 if b is NOWHERE else b, a)]):
            raise Bad("arcs are not sorted")
    s["arcs"] = {a + b: calls for a, b, calls in zip(callers, callees, r.column(n))}


def histograms(r, s, n, bins, ordered):
    s["histograms"] = []
    for _ in range(n):
        build, count, low, span, rate = r.numbers(5)
        h = {"build": build, "bins": count, "low": low, "high": low + span, "rate": rate, "dimension": r.text(),
             "abbreviation": r.take(1).decode(), "used": r.number(), "ticks": {}}
        if ordered:
            h["commit"], h["rank"] = r.numbers(2)
        s["histograms"].append(h)
    gaps, ticks = r.column(bins), r.column(bins)
    at = 0
    for h in s["histograms"]:
        index = -1
        for _ in range(h["used"]):
            index += 1 + gaps[at]
            h["ticks"][index] = ticks[at]
            at += 1
    if at != bins:
        raise Bad("bins")


def stacks(r, s, trees, nodes):
    s["trees"] = [{"rate": r.number(), "dimension": r.text(), "abbreviation": r.take(1).decode(), "used": r.number()}
                  for _ in range(trees)]
    r.column(nodes)
    s["node_ticks"] = r.column(nodes)
    table = r.places()
    s["nodes"] = [(i & 1, *table[i >> 1]) for i in r.column(nodes)]


def counts(data, s):
    r = Reader(data)
    if r.take(1) != b"\1":
        raise Bad("format")
    total, flags = r.number(), r.take(1)[0]
    n_arcs, n_histograms, bins, trees, nodes = r.numbers(5)
    sizes = [r.numbers(2) for _ in range(3 if trees else 2)]
    if sum(raw for raw, _ in sizes) != total:
        raise Bad("sizes")
    sections = [Reader(inflate(r.take(packed), raw)) for raw, packed in sizes]
    r.end()
    s["sorted"], s["saturated"] = bool(flags & 1), bool(flags & 2)
    s["trees"] = s["nodes"] = s["node_ticks"] = []
    arcs(sections[0], s, n_arcs, s["sorted"])
    histograms(sections[1], s, n_histograms, bins, s["sorted"])
    if trees:
        stacks(sections[2], s, trees, nodes)
    for section in sections:
        section.end()


def shares(data, s):
    """The shares of each row, {group: number}: rows are bins, arcs and nodes."""
    r = Reader(data)
    if r.take(1) != b"\2":
        raise Bad("format of shares")
    size = r.number()
    r = Reader(inflate(data[r.at:], size))
    numbers = ([n for h in s["histograms"] for n in h["ticks"].values()], list(s["arcs"].values()), s["node_ticks"])
    masks = [m for part in numbers for m in r.column(len(part))]
    numbers = [n for part in numbers for n in part]
    stored = [bin(m).count("1") - (m != 0 and n != 2**63 - 1) for m, n in zip(masks, numbers)]
    values, rows = iter(r.column(sum(stored))), []
    r.end()
    for mask, number, count in zip(masks, numbers, stored):
        row = [next(values) for _ in range(count)]
        groups = [g for g in range(16) if mask >> g & 1]
        row += [number - sum(row)] * (len(groups) - count)
        if min(row, default=1) < 1 or (number < 2**63 - 1 and sum(row) != number):
            raise Bad("shares do not add up")
        rows.append(dict(zip(groups, row)))
    return rows


def upload(data):
    """number → list of values, of the message."""
    r, out = Reader(data), {}
    while r.at < len(data):
        key = r.number()
        value = (r.number() if key & 7 == 0 else struct.unpack("<Q", r.take(8))[0] if key & 7 == 1
                 else r.take(r.number()))
        out.setdefault(key >> 3, []).append(value)
    return out


def resealed(data):
    """The same fields but the last, the checksum, which is made anew."""
    return data[:-8] + hashlib.sha256(data[:-11]).digest()[:8]


def pairs(messages):
    return [tuple(m.get(i, [b""])[-1].decode() for i in (1, 2)) for m in map(upload, messages)]


def read(data):
    """A dictionary of what is in the upload."""
    m = upload(data)

    def last(number, default=0):
        return m.get(number, [default])[-1]

    if data != resealed(data):
        raise Bad("checksum")
    s = {"kind": KINDS[last(15)], "epoch": last(1), "sequence": last(2), "hour": last(4) // HOUR,
         "digest": hashlib.sha256(data).digest()}
    if len(s["epoch"]) != 12:
        raise Bad("epoch")
    if s["kind"] == "counts":
        s.update(first=last(3) or last(4), last=last(4), ended=last(19) or last(4), inexact=last(9), uid=last(14),
                 program=last(5), builds=pairs(m[6]), labels=pairs(m.get(7, [])), boot=last(20, b"").decode(),
                 uploads=last(17), processes=Reader(last(18, bytes(16))).numbers(16))
        counts(last(8), s)
        if not s["sorted"]:
            raise Bad("a sum is not sorted")
        s["shares"] = shares(last(16), s)
    return s
