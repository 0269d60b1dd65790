"""Executables and gmon.out files of a wanted shape, for the bench: real ELF files made by the assembler."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Gmon, bounds  # noqa: E402

SIZE = 16  # bytes of a generated function


def executable(folder, functions):
    """A program with that many functions of 16 bytes, f0 … fN−1, in this order; the address of the first."""
    path = os.path.join(folder, f"graph{functions}")
    with open(path + ".s", "w") as f:
        f.write(".text\n.globl main\n.type main,@function\nmain: xorl %eax,%eax\nret\n.size main,.-main\n.balign 16\n")
        for i in range(functions):
            f.write(f".globl f{i:06}\n.type f{i:06},@function\nf{i:06}: nop\nret\n.balign 16\n.size f{i:06},.-f{i:06}\n"
                    f"")
        f.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-pg", "-no-pie", "-Wl,--build-id", "-o", path, path + ".s"], check=True)
    first = next(int(l.split()[0], 16) for l in subprocess.run(["nm", path], capture_output=True, text=True,
            check=True).stdout.splitlines()
                 if l.endswith(" f000000"))
    return path, first


def giant_cycle(path, exe, first, functions, arcs, seed=1):
    """gmon.out: a ring through all functions and random arcs besides, so that everything is one cycle."""
    draw = random.Random(seed)
    g = Gmon(*bounds(exe))
    for i in range(functions):
        g.arc(first + SIZE * i + 1, first + SIZE * ((i + 1) % functions), draw.randint(1, 1000))
    for _ in range(arcs - functions):
        g.arc(first + SIZE * draw.randrange(functions) + 1, first + SIZE * draw.randrange(functions),
              draw.randint(1, 1000))
    for i in range(functions):
        g.tick(first + SIZE * i, draw.randint(0, 60))
    return g.write(path)


def lua_sized(path, exe, first, functions, seed=1):
    """gmon.out like that of a busy interpreter: 1,149 arcs among 420 functions, most of the samples in a few of
    them."""
    draw = random.Random(seed)
    g = Gmon(*bounds(exe))
    seen = set()
    while len(seen) < 1149:
        a, b = draw.randrange(420), draw.randrange(420)
        if a < b and (a, b) not in seen:
            seen.add((a, b))
            g.arc(first + SIZE * a * (functions // 420) + 1, first + SIZE * b * (functions // 420),
                  int(draw.paretovariate(0.4)) % 4000000 + 1)
    for _ in range(700):
        g.tick(first + 4 * draw.randrange(functions * SIZE // 4), draw.randint(1, 9))
    return g.write(path)
