"""Random gmon.out files for a random executable: of glibc's format, of the two BSD formats, and broken ones."""
import struct


class Geometry:
    def __init__(self, r, exe):
        self.rate = (r.choice([1, 100, 100, 100, 1000, 999, 1000000]) if r.random() < 0.98
                     else r.choice([0, 2 ** 31, 2 ** 32 - 1]))
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
        if r.random() < 0.02:  # nonsense
            low, high, bins = self.ranges[0]
            self.ranges[0] = r.choice([(low, high, 0), (low, low, bins), (high, low, bins), (low, low + 1, bins)])
        if exe.scannable:  # gprof -c reads .text only as far as a histogram goes
            self.ranges = ([(l, min(h, exe.high), b) for l, h, b in self.ranges if l < exe.high or h <= l]
                           or [(low, exe.high, 8)])

    def word(self, exe):
        return "Q" if exe.pointer == 8 else "I"


def make_arcs(r, exe, hot):
    top = 2 ** (8 * exe.pointer)
    arcs = r.choice([0, 1, 5, 30, 200, 800]) if r.random() < 0.99 else 10000
    for _ in range(arcs):
        ends = []
        for _ in range(2):
            if r.random() < 0.9:
                ends.append(r.choice(hot) + r.choice([0, 0, 1, 2, 5]))
            else:
                ends.append(max(0, r.randrange(exe.low - 50, exe.high + 300)))
        yield ends[0] % top, ends[1] % top, r.choice([0, 1, 1, 2, 3, 3, r.randrange(100), r.randrange(10 ** 6),
                                                      2 ** 32 - 1])


def make_bins(r, bins):
    fill, top = r.choice([0.02, 0.2, 0.9]), r.choice([1, 3, 100, 65535])
    return struct.pack("<%dH" % bins, *[r.randint(1, top) if r.random() < fill else 0 for _ in range(bins)])


def make_gmon(r, exe, geometry, hot):
    word = geometry.word(exe)
    data = b"gmon" + struct.pack("<I", r.choice([1, 1, 1, 0])) + bytes(12)
    records = []
    for low, high, bins in geometry.ranges * r.choice([1, 1, 1, 2]) if r.random() < 0.93 else []:
        if r.random() < 0.02:  # a record that disagrees
            low, bins = r.choice([(min(low + 2, high - 1), bins), (low, bins + 1), (low - 4, bins)])
        dimension = geometry.dimension if r.random() < 0.995 else b"bananas"
        abbreviation = geometry.abbreviation if r.random() < 0.997 else b"x"
        body = struct.pack("<B2%sII15s" % word, 0, low, high, bins, geometry.rate, dimension) + abbreviation
        records.append(body + make_bins(r, bins))
    for arc in make_arcs(r, exe, hot):
        records.append(struct.pack("<B2%sI" % word, 1, *arc))
    if r.random() < 0.2:
        r.shuffle(records)
    if r.random() < 0.01 and data[4] == 1:
        n = r.randrange(3)
        records.insert(r.randrange(len(records) + 1), struct.pack("<BI%d%s" % (2 * n, word), 2, n,
                *[exe.low] * (2 * n)))
    return data + b"".join(records)


def make_bsd(r, exe, geometry, hot, new):
    """new: 4.4BSD's header."""
    word = geometry.word(exe)
    low, high, bins = geometry.ranges[0]
    size = 2 * exe.pointer + 4 + (20 if new else 0)
    data = struct.pack("<2%sI" % word, low, high, size + 2 * bins)
    if new:
        data += struct.pack("<II", 0x51879, geometry.rate) + bytes(12)
    arcs = [struct.pack("<3" + word, *arc) for arc in make_arcs(r, exe, hot)]
    return data + make_bins(r, bins) + b"".join(arcs)


def damage(r, data):
    """Cuts it off, or changes a byte."""
    if r.random() < 0.7:
        return data[:r.choice([r.randrange(len(data) + 1), r.randrange(min(len(data), 80) + 1)])]
    at = r.choice([r.randrange(len(data)), r.randrange(min(len(data), 64))])
    return data[:at] + bytes([r.randrange(256)]) + data[at + 1:]
