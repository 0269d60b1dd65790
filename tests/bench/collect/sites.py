# not a test
"""Writes an assembly program of many call sites, in the form that gcc -O2 gives such functions, with -pg and without: a
tree of calls, each function called from one place, four calls in each, in an order that caches do not like. Inner
functions are padded so that glibc's arc table (a fixed part of the text) is large enough."""
import random


def function(f, name, calls, pad, counted):
    f.write(f".globl {name}\n.type {name},@function\n.p2align 4\n{name}:\n.cfi_startproc\n")
    f.write("push %rbp\nmov %rsp,%rbp\ncall *mcount@GOTPCREL(%rip)\n" if counted else "sub $8,%rsp\n" if calls else "")
    f.write("".join(f"call {c}\n" for c in calls))
    f.write("pop %rbp\nret\n" if counted else "add $8,%rsp\nret\n" if calls else "ret\n")
    f.write(f".fill {pad},1,0xcc\n" if pad else "")
    f.write(f".cfi_endproc\n.size {name},.-{name}\n")


def source(path, functions, counted):
    """`tree` calls everything once; how many calls that is."""
    generator = random.Random(functions)
    names, level, calls = [f"f{i}" for i in range(functions)], 0, 1
    with open(path, "w", encoding="utf-8") as f:
        f.write(".text\n")
        layout = list(names)
        generator.shuffle(layout)
        for name in layout:
            function(f, name, [], 0, counted)
        while len(names) > 1:
            calls += len(names)
            generator.shuffle(names)
            groups = [names[i:i + 4] for i in range(0, len(names), 4)]
            names = [f"g{level}_{i}" for i in range(len(groups))]
            order = list(zip(names, groups))
            generator.shuffle(order)
            for name, group in order:
                function(f, name, group, 1024, counted)
            level += 1
        function(f, "tree", names, 0, counted)
        f.write('.section .note.GNU-stack,"",@progbits\n')
    return calls + 1
