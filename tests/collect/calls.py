# not a test
"""How often each function that a compiler instrumented was called: as the collector counted it, and as valgrind's
callgrind, which runs every instruction itself, saw it. By name; names of one address are one."""
import bisect
import collections
import os
import re
import subprocess

from bed import ARCS, run


class Functions:
    """The functions of an ELF file, and which of them count their calls."""

    def __init__(self, path):
        self.path, at = path, {}
        for line in run("nm", "-S", "--defined-only", path).stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "TtWwi":
                at.setdefault(int(words[0], 16), [int(words[1], 16), set()])[1].add(words[3])
        self.starts = sorted(at)
        self.sizes = [at[a][0] for a in self.starts]
        names = [min(at[a][1]) for a in self.starts]
        self.names, self.alias = names, {n: names[i] for i, a in enumerate(self.starts) for n in at[a][1]}
        self.counting = self.instrumented()

    def at(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.names[i] if i >= 0 and address < self.starts[i] + max(self.sizes[i], 1) else None

    def instrumented(self):
        """Functions with a call of mcount or __fentry__ in them."""
        found = set()
        code = subprocess.Popen(["objdump", "-dw", "--no-show-raw-insn", self.path], stdout=subprocess.PIPE, text=True)
        for line in code.stdout:
            if "call" in line and re.search(r"call.*<(_?mcount|__fentry__)[@+>]", line):
                found.add(self.at(int(line.split(":")[0], 16)))
        code.wait()
        return found - {None}


def counted(processes, functions):
    """By object and function, of processes as the harvester dumped them."""
    total = collections.Counter()
    for p in processes:
        for kind, _, _, module, address, count in p["counts"]:
            m = p.module(module)
            if kind == ARCS and m and m["name"] in functions:
                total[m["name"], functions[m["name"]].at(address)] += count
    return total


def callgrind(command, functions, folder, **options):
    """The same, from callgrind; and the run's standard output. env has the collector preloaded: it takes the place of
    glibc's, whose timer valgrind does not survive. Without timers of its own it does what the program does, and counts
    the same run. Rewritten call sites jump back from where they count, which callgrind takes for second calls."""
    options["env"]["PROFD_CLOCK"] = "off"
    out = os.path.join(folder, "callgrind.out")
    done = subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}",
                           "--compress-strings=no", "--compress-pos=no",
                           "--demangle=no", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                           **options)
    if done.returncode not in (0, 1) or not os.path.exists(out):
        raise RuntimeError(f"callgrind: {done.returncode} {done.stderr[-600:]}")
    total, here, object_, callee = collections.Counter(), None, None, None
    with open(out, errors="replace") as lines:
        for line in lines:
            if line.startswith("ob="):
                here = line[3:-1]
            elif line.startswith("cob="):
                object_ = line[4:-1]
            elif line.startswith("cfn="):
                callee = line[4:-1]
            elif line.startswith("calls="):
                target = object_ or here
                if target in functions:
                    name = re.sub(r"'\d+$", "", callee)
                    total[target, functions[target].alias.get(name, name)] += int(line[6:].split()[0])
                object_ = None
    os.unlink(out)
    return total, done.stdout


def compare(ours, theirs, functions):
    """(functions that were called, calls, {function: (ours, theirs)} where they differ), of those that are
    instrumented."""
    wanted = {(path, name) for path, f in functions.items() for name in f.counting}
    called = {key for key in wanted if ours[key] or theirs[key]}
    return len(called), sum(ours[k] for k in called), {k[1]: (ours[k], theirs[k]) for k in sorted(called)
                                                       if ours[k] != theirs[k]}
