"""A build with measured stacks of a wanted size, for the bench of the dashboard: a real ELF file, and an upload in the
stored encoding."""
import os
import random
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from wire import Wire, encoded, field, sender_number, varint  # noqa: E402

SIZE, RETURN, RATE = 16, 2, 99  # bytes of a function; of the call at its begin; ticks a second
DEPTH = 45


def executable(folder, functions):
    """A program of functions that begin with an indirect call: its path, its build-id, the address of the first."""
    path = os.path.join(folder, f"stacks{functions}")
    with open(path + ".s", "w") as f:
        f.write(".text\n.globl main\n.type main,@function\nmain: ret\n.size main,.-main\n.balign 16\n")
        for i in range(functions):
            f.write(f".globl f{i:06}\n.type f{i:06},@function\nf{i:06}: call *%rax\nret\n.balign 16\n"
                    f".size f{i:06},.-f{i:06}\n")
        f.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-no-pie", "-Wl,--build-id", "-o", path, path + ".s"], check=True)
    said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    build = said.split("Build ID:")[1].split()[0]
    names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return path, build, next(int(line.split()[0], 16) for line in names if line.endswith(" f000000"))


def grow(draw, first, functions, budget, depth=0):
    """Nodes below one, depth first: (depth, ends, address, ticks); ends: ticks found it innermost. Siblings ascend."""
    parts = []
    while budget > 0:
        parts.append(min(budget, max(1, int(budget * draw.uniform(0.1, 0.6)))))
        budget -= parts[-1]
    out = []
    for place, part in zip(sorted(draw.sample(range(functions), len(parts))), parts):
        below = grow(draw, first, functions, part - 1, depth + 1) if part > 1 and depth < DEPTH else []
        out += [(depth, not below, first + SIZE * place + RETURN, 0 if below else draw.randrange(1, 6)), *below]
    return out


def counted(nodes, arcs=()):
    """The stored encoding of these stacks and arcs, and of a histogram with the stacks' ticks in one bin."""
    low = min(n[2] for n in nodes) & ~15
    histogram = (0, low, low + SIZE, 1, RATE, "seconds", "s", {0: sum(n[3] for n in nodes)})
    tree = [(depth, int(ends), 0, at, ticks) for depth, ends, at, ticks in nodes]
    return encoded([histogram], arcs, clocks=[(RATE, tree)])


def send(socket, path, build, first, functions, count, arcs=()):
    """Uploads a tree of so many nodes, and arcs (caller, callee, calls) that ascend. Symbols are sent before, by
    profctl symbols."""
    now, nodes = time.time_ns(), grow(random.Random(3), first, functions, count)
    body = field(1, struct.pack("<QI", sender_number(), 9)) + field(2, 1)
    body += varint(3 << 3 | 1) + struct.pack("<Q", now - 10**9) + varint(4 << 3 | 1) + struct.pack("<Q", now)
    body += field(6, field(1, build) + field(2, path)) + field(8, counted(nodes, arcs))
    body += field(10, 1) + field(11, "c" * 32)
    with Wire(socket, hello=False) as w:
        w.send("HELLO", field(1, 1) + field(2, 2) + field(3, "stack_tree.py"))
        assert w.take()[0] == "WELCOME"
        w.send("UPLOAD", body)
        while (answer := w.take())[0] != "ACK":
            assert answer[0] != "NACK", answer
    return len(nodes)
