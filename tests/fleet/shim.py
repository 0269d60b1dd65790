# not a test
"""Something between two ends of a Unix socket that changes frames: it makes a fleet err as a wrong profd would."""
import os
import socket
import struct
import threading

from segment import resealed
from wire import NAMES, field, fields


def pieces(s):
    """The frames that come: (header, payload)."""
    data = b""
    while True:
        try:
            piece = s.recv(1 << 16)
        except OSError:
            return
        if not piece:
            return
        data += piece
        while len(data) >= 12 and len(data) >= 12 + (size := struct.unpack_from("<I", data)[0]):
            yield data[:12], data[12:12 + size]
            data = data[12 + size:]


class Shim:
    """Listens on path and passes frames on to target. asked and answered get the name and the payload of a frame, and
    give the payload that is passed on, or None: nothing is."""

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def asked(self, kind, payload, tag, near):
        return payload

    def answered(self, kind, payload):
        return payload

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.target)
            except OSError:
                near.close()
                continue
            threading.Thread(target=self.pump, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, False), daemon=True).start()

    def pump(self, a, b, up):
        for head, payload in pieces(a):
            kind, tag = NAMES.get(head[5], ""), struct.unpack_from("<I", head, 8)[0]
            payload = self.asked(kind, payload, tag, a) if up else self.answered(kind, payload)
            if payload is None:
                continue
            try:
                b.sendall(struct.pack("<I", len(payload)) + head[4:] + payload)
            except OSError:
                break
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def rekeyed(data, epoch, sequence):
    """The same segment with another key: the last of two fields counts."""
    return resealed(data[:-11] + field(1, epoch) + field(2, sequence) + data[-11:])


class Keys(Shim):
    """Of a host's socket: gives segments other keys than profd. key(id, epoch, sequence) says which. What it remembers
    belongs to the host's database: save and restore go with the database's backup. Of two fields with the same number
    the last one counts."""

    def __init__(self, path, target):
        self.known, self.saved = {}, {}
        super().__init__(path, target)

    def key(self, number, epoch, sequence):
        return epoch, sequence

    def started(self):
        pass

    def save(self):
        self.saved = dict(self.known)

    def restore(self):
        self.known = dict(self.saved)
        self.started()

    def answered(self, kind, payload):
        m = fields(payload) if kind == "SEGMENT" else {}
        if not m.get(1):
            return payload
        ours = m[2], m[3]
        if ours not in self.known:
            self.known[ours] = self.key(m[1], *ours)
        epoch, sequence = self.known[ours]
        return payload + field(2, epoch) + field(3, sequence) + field(4, rekeyed(m[4], epoch, sequence))

    def asked(self, kind, payload, tag, near):
        if kind != "ACKNOWLEDGE":
            return payload
        m = fields(payload)
        theirs = {v: k for k, v in self.known.items()}.get((m[1], m[2]), (m[1], m[2]))
        return payload + field(1, theirs[0]) + field(2, theirs[1])


class OneEpoch(Keys):
    """Numbered when opened, but with one epoch for ever."""

    def __init__(self, path, target):
        self.epoch = os.urandom(12)
        super().__init__(path, target)

    def key(self, number, epoch, sequence):
        return self.epoch, number


class WhenSealed(Keys):
    """A new epoch at each start, but numbered when sealed."""

    def __init__(self, path, target):
        super().__init__(path, target)
        self.started()

    def started(self):
        self.epoch, self.last = os.urandom(12), 0

    def key(self, number, epoch, sequence):
        self.last += 1
        return self.epoch, self.last
