# not a test
"""The Unix protocol spoken by hand: what a client library would never send can be sent with it, too."""
import array
import ctypes
import os
import socket
import struct

TYPES = {n: i + 1 for i, n in enumerate("HELLO WELCOME UPLOAD ACK NACK WANT_OBJECT OBJECT DECLINE QUERY REPLY SYNC "
                                     "ATTACH ADMIN FETCH SEGMENT ACKNOWLEDGE FETCH_OBJECT PARSED".split())}
NAMES = {v: k for k, v in TYPES.items()}
LAST = 1


def varint(n):
    """Negative numbers have 64 bits."""
    n += (n < 0) << 64
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """One protobuf field: text and bytes with length, numbers as varint, a list of numbers packed."""
    if isinstance(value, list):
        return field(number, b"".join(map(varint, value))) if value else b""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value) if value else b""


def fixed(number, value):
    """A field of type fixed64."""
    return varint(number << 3 | 1) + struct.pack("<Q", value) if value else b""


def all_fields(data):
    """(number, value) of each field of a message: integers, or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or number()
            assert at + size <= len(data), "a field ends behind its message"
            value, at = data[at:at + size], at + size
            yield key >> 3, struct.unpack("<Q", value)[0] if key & 7 == 1 else value


def fields(data):
    """number → last value, of a message."""
    return dict(all_fields(data))


def zstd(raw):
    """A zstd frame: by the library itself, because the checksum of a frame's content is no business of ours."""
    lib = ctypes.CDLL("libzstd.so.1")
    for name in ("ZSTD_createCCtx", "ZSTD_compressBound", "ZSTD_compress2"):
        getattr(lib, name).restype = ctypes.c_void_p if name == "ZSTD_createCCtx" else ctypes.c_size_t
    context = ctypes.c_void_p(lib.ZSTD_createCCtx())
    lib.ZSTD_CCtx_setParameter(context, 201, 1) # checksum
    out = ctypes.create_string_buffer(lib.ZSTD_compressBound(ctypes.c_size_t(len(raw))))
    size = lib.ZSTD_compress2(context, out, ctypes.c_size_t(len(out)), raw, ctypes.c_size_t(len(raw)))
    lib.ZSTD_freeCCtx(context)
    return out.raw[:size]


def column(numbers, least=0):
    """Byte planes, in chunks of 4096 numbers."""
    out = b""
    for at in range(0, len(numbers), 4096):
        chunk = numbers[at:at + 4096]
        width = max(least, (max(chunk).bit_length() + 7) // 8)
        out += bytes([width]) + b"".join(bytes(n >> 8 * plane & 255 for n in chunk) for plane in range(width))
    return out


NOWHERE = 1 << 32 # sorts behind all builds


def places(rows):
    """The distinct (build, address) of rows, encoded, and the number of each row's."""
    distinct = sorted(set(rows))
    number = {place: i for i, place in enumerate(distinct)}
    runs, gaps = [], []
    for build, address in distinct:
        if runs and runs[-1][1] == build:
            gaps.append(address - last)
            runs[-1][0] += 1
        else:
            gaps.append(0)
            runs.append([1, build, address])
        last = address
    out = varint(len(distinct)) + varint(len(runs))
    for length, build, first in runs:
        out += varint(length) + varint(0 if build == NOWHERE else build + 1) + varint(first)
    return out + column(gaps), [number[row] for row in rows]


def sections(sizes, raws):
    """The stored encoding of sections. sizes: arcs, histograms, bins, trees, nodes."""
    packed = [zstd(raw) for raw in raws]
    return (b"\1" + varint(sum(len(raw) for raw in raws)) + b"\0" + b"".join(varint(n) for n in sizes)
            + b"".join(varint(len(raw)) + varint(len(p)) for raw, p in zip(raws, packed)) + b"".join(packed))


def counts(ticks, low=0x1000, high=0x2000, bins=1024):
    """The stored encoding of one histogram with these ticks in bin 0, and no arc."""
    return encoded([(0, low, high, bins, 100, "seconds", "s", {0: ticks})])


WORDS = {"processes": 0, "cpu_seconds": 1, "sampled_seconds": 2, "collector_seconds": 3, "blocked_seconds": 4,
         "outside_seconds": 6, "calls_lost": 7, "pauses": 16, "ends_not_seen": 18, "of a later version": 63}


def zigzag(n):
    return (n << 1 ^ n >> 63) & (2**64 - 1)


def trees(clocks):
    """The section of stacks. A clock: (rate, nodes); a node in preorder: (depth, kind, build, address, ticks)."""
    nodes = [node for _, tree in clocks for node in tree]
    out = b"".join(varint(rate) + varint(7) + b"secondss" + varint(len(tree)) for rate, tree in clocks)
    up = []
    for _, tree in clocks:
        most = 0
        for depth, *_ in tree:
            up.append(most - depth)
            most = depth + 1
    table, number = places([(NOWHERE if node[2] is None else node[2], node[3]) for node in nodes])
    return (out + column(up) + column([node[4] for node in nodes], 1) + table
            + column([2 * number[i] + node[1] for i, node in enumerate(nodes)]))


def tree(stacks):
    """Nodes of stacks of two frames of build 0: {return address: {pc: ticks}}."""
    nodes = []
    for caller in sorted(stacks):
        nodes.append((0, 0, 0, caller, 0))
        nodes += [(1, 1, 0, pc, stacks[caller][pc]) for pc in sorted(stacks[caller])]
    return nodes


def encoded(histograms, arcs=(), outside=False, stacks=None, clocks=()):
    """The stored encoding. A histogram: (build, low, high, bins, rate, dimension, abbreviation, {index: ticks}); an
    arc: (caller, callee, calls), of build 0; outside: its caller is outside every build. Stacks: as of tree, of the
    first histogram; or clocks, as of trees."""
    if stacks:
        clocks = [(histograms[0][4], tree(stacks))]
    callers, caller = places([(NOWHERE if outside else 0, arc[0]) for arc in arcs])
    callees, callee = places([(0, arc[1]) for arc in arcs])
    rows = callers + column([zigzag(n - m) for n, m in zip(caller, [0] + caller)])
    rows += callees + column(callee) + column([arc[2] for arc in arcs], 1)
    heads, gaps, ticks = b"", [], []
    for build, low, high, bins, rate, dimension, short, used in histograms:
        heads += varint(build) + varint(bins) + varint(low) + varint(high - low) + varint(rate)
        heads += varint(len(dimension)) + dimension.encode() + short.encode() + varint(len(used))
        previous = -1
        for index in sorted(used):
            gaps.append(index - previous - 1)
            ticks.append(used[index])
            previous = index
    nodes = sum(len(nodes) for _, nodes in clocks)
    raws = [rows, heads + column(gaps) + column(ticks, 1)] + ([trees(clocks)] if clocks else [])
    return sections((len(arcs), len(histograms), len(ticks), len(clocks), nodes), raws)


def words(values, **other):
    h = {"build": 0, "low": 0, "high": 64, "bins": 64, "rate": 1, "dimension": "collector", "short": "c", **other}
    return h["build"], h["low"], h["high"], h["bins"], h["rate"], h["dimension"], h["short"], {WORDS[k]: v for k,
            v in values.items() if v}


def upload(sender, sequence, ticks=1, build_id="ab" * 20, name="/bin/made-up", labels=()):
    """The body of an UPLOAD. sender is a number."""
    builds = field(6, field(1, build_id) + field(2, name))
    out = field(1, struct.pack("<QI", sender + 1, 7)) + field(2, sequence) + builds
    for key, value in labels:
        out += field(7, field(1, key) + field(2, value))
    return out + field(8, counts(ticks)) + field(10, 1) + field(11, "0123456789abcdef" * 2)


def header(kind, tag=0, length=0, flags=0, version=1):
    return struct.pack("<IBBHI", length, version, TYPES.get(kind, kind), flags, tag)


class Wire:
    """A connection. ask() sends a frame and takes the answer with its tag."""

    def __init__(self, path, hello=True, timeout=300):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path) # waits for a place in the queue; with a timeout it would fail instead
        self.socket.settimeout(timeout)
        self.buffer = b""
        if hello:
            self.send("HELLO", field(1, 1) + field(2, 1) + field(3, "wire.py"))
            self.welcome = self.take()

    def raw(self, data):
        self.socket.sendall(data)

    def send(self, kind, body=b"", tag=1, flags=0, fds=()):
        data = header(kind, tag, len(body), flags | len(fds) << 8) + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.socket.sendmsg([data], rights)
        if sent < len(data):
            self.raw(data[sent:])

    def read(self, n):
        while len(self.buffer) < n:
            piece = self.socket.recv(1 << 16)
            if not piece:
                return None
            self.buffer += piece
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def take(self):
        """(type name, tag, flags, fields), or None at the end of the stream."""
        try:
            head = self.read(12)
            if head is None:
                return None
            length, _, kind, flags, tag = struct.unpack("<IBBHI", head)
            return NAMES.get(kind, kind), tag, flags, fields(self.read(length) or b"")
        except ConnectionResetError:
            return None

    def query(self, target, tag=5):
        """(HTTP status, body)."""
        self.send("QUERY", field(1, target), tag)
        status, body = None, b""
        while True:
            kind, got, flags, m = self.take()
            if kind == "NACK":
                raise RuntimeError(m.get(4))
            if kind != "REPLY" or got != tag:
                continue
            status = status or m.get(1)
            body += m.get(4, b"")
            if flags & LAST:
                return status, body

    def admin(self, verb, *arguments, tag=6):
        """(status of a NACK or 0, sentence or body, how often it said only how far it was)."""
        self.send("ADMIN", field(1, verb) + b"".join(field(2, a) for a in arguments), tag)
        body, told = b"", 0
        while True:
            kind, got, flags, m = self.take()
            if got != tag:
                continue
            if kind == "NACK":
                return m.get(1), m.get(4, b"").decode(), told
            told += not flags & LAST and 1 not in m and not m.get(4)
            body += m.get(4, b"")
            if flags & LAST:
                return 0, body, told

    def ended(self):
        """True if the daemon closes within the timeout; frames before that are thrown away."""
        try:
            while self.take() is not None:
                pass
            return True
        except socket.timeout:
            return False

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def sender_number():
    return int.from_bytes(os.urandom(6), "little")
