"""A perf.data file of given samples, for perf to read: the format of the kernel's tools/perf/Documentation
(perf.data-file-format.txt), one event, sample type IP | TID | TIME | PERIOD."""
import struct

ATTRIBUTES = 64  # bytes of the first version of perf_event_attr
CPU_CLOCK = 0    # of PERF_TYPE_SOFTWARE (1)
IP, TID, TIME, PERIOD = 1, 2, 4, 0x100
MMAP, COMM, SAMPLE, USER = 1, 3, 9, 2
PID = 1000


def record(kind, body):
    return struct.pack("<IHH", kind, USER, 8 + len(body)) + body


def text(name):
    data = name.encode() + b"\0"
    return data + bytes(-len(data) % 8)


def write(path, exe, address, length, offset, samples):
    """address, length, offset: of the executable's code, in memory and in the file. samples: {address: weight}"""
    data = record(COMM, struct.pack("<II", PID, PID) + text("shape"))
    data += record(MMAP, struct.pack("<IIQQQ", PID, PID, address, length, offset) + text(exe))
    data += b"".join([record(SAMPLE, struct.pack("<QIIQQ", ip, PID, PID, 1 + i, weight))
                      for i, (ip, weight) in enumerate(samples.items())])
    attributes = struct.pack("<IIQQQQQ", 1, ATTRIBUTES, CPU_CLOCK, 1, IP | TID | TIME | PERIOD, 0, 0)
    attributes += bytes(ATTRIBUTES - len(attributes)) + bytes(16)  # no ids
    at = 104 + len(attributes)
    with open(path, "wb") as f:
        f.write(b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, ATTRIBUTES + 16, 104, len(attributes), at, len(data), 0, 0))
        f.write(bytes(32) + attributes + data)
    return path
