# not a test
"""Segments as profd-segment(5) specifies them: a reader that shares nothing with profd's own."""
import ctypes
import hashlib

KINDS = ("counts", "withdrawn", "dropped")
HOUR = 3600 * 10**9


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
        start = self.at
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        if byte == 0 and self.at - start > 1:
            raise Bad("a number with more bytes than it needs")
        return value

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
        return [self.number() for _ in range(n)]


def addresses(r, n):
    out, at = [], 0
    for _ in range(n):
        at = (at + r.signed()) % 2**64
        out.append(at)
    return out


def stacks(r, s, trees, nodes):
    s["trees"] = [{"rate": r.number(), "dimension": r.text(), "abbreviation": r.take(1).decode(), "used": r.number()}
                  for _ in range(trees)]
    if sum(t["used"] for t in s["trees"]) != nodes:
        raise Bad("nodes")
    s["nodes"] = list(zip(r.column(nodes), r.column(nodes), r.column(nodes), addresses(r, nodes)))


def rows(r, s):
    histograms, bins, arcs, shares, trees, nodes = r.column(6)
    s["histograms"] = []
    for _ in range(histograms):
        build, count, low, span, rate = r.column(5)
        s["histograms"].append({"build": build, "bins": count, "low": low, "high": low + span, "rate": rate,
                                "dimension": r.text(), "abbreviation": r.take(1).decode(), "used": r.number(),
                                "rank": r.number(), "ticks": {}})
    indices = []
    for h in s["histograms"]:
        at = -1
        for _ in range(h["used"]):
            at += 1 + r.number()
            indices.append((h, at))
    from_build, from_address = r.column(arcs), addresses(r, arcs)
    to_build, to_address, ranks = r.column(arcs), addresses(r, arcs), addresses(r, arcs)
    stacks(r, s, trees, nodes)
    groups = r.column(bins + arcs + nodes)
    numbers = [sum(r.number() for _ in range(bin(g).count("1"))) for g in groups]
    if sum(bin(g).count("1") for g in groups) != shares:
        raise Bad("shares")
    for (h, index), ticks in zip(indices, numbers):
        h["ticks"][index] = ticks
    s["arcs"] = {(from_build[i], from_address[i], to_build[i], to_address[i]): numbers[bins + i] for i in range(arcs)}
    s["node_ticks"] = numbers[bins + arcs:]
    if sorted(ranks) != list(range(arcs)):
        raise Bad("ranks")


def read(data):
    """A dictionary of what is in the segment."""
    if data[0] != 1:
        raise Bad(f"version {data[0]}")
    r = Reader(data[33:])
    size = r.number()
    content = inflate(r.data[r.at:], size)
    if hashlib.sha256(data[:1] + content).digest() != data[1:33]:
        raise Bad("digest")
    r = Reader(content)
    s = {"kind": KINDS[r.number()], "epoch": r.take(12), "sequence": r.number(), "hour": r.number(),
         "digest": data[1:33]}
    if s["kind"] == "counts":
        s["uid"] = r.number()
        s["last"] = s["hour"] * HOUR + r.number()
        s["first"] = s["last"] - r.number()
        s["ended"] = s["last"] - r.number()
        s["inexact"], s["saturated"], s["uploads"] = r.column(3)
        s["processes"] = r.column(16)
        builds, s["program"] = r.column(2)
        s["builds"] = [(r.text(), r.text()) for _ in range(builds)]
        s["labels"] = [(r.text(), r.text()) for _ in range(r.number())]
        rows(r, s)
    if r.at != len(content):
        raise Bad("bytes behind the content")
    return s
