"""Who calls whom, from the symbol tables of the object files, those of assembly included: an undefined symbol is a
reference, whether a call or an address in a table. Functions inside one file do not matter here, so inlining hides
nothing."""
import os
import re
import subprocess


def is_compiled(path):
    """C, and the assembly of this machine: x_MACHINE.S."""
    return path.endswith((".c", f"_{os.uname().machine}.S"))


class Symbols:
    """Of the objects below a build directory whose sources are in the tree; objects of renamed sources are ignored."""

    def __init__(self, tree, build):
        self.defined, self.used, self.missing = {}, {}, []
        objects = {}
        for f in tree.all:
            if is_compiled(f) and re.match(r"(daemon|client|proto|tests)/", f):
                path = f"{build}/{f[:-2]}.o"
                if f.startswith("client/collect/"):
                    path = f"{build}/collect/{f[len('client/collect/'):-2]}.o"
                if os.path.exists(path):
                    objects[path] = f
                elif not f.startswith("tests/"):
                    self.missing.append(f)
        if not objects:
            return
        out = subprocess.run(["nm", "-A", "-P", *objects], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            match = re.match(r"(.*?)(?:\[.*\])?: (\S+) (\S)", line)
            source, name, kind = objects[match.group(1)], match.group(2), match.group(3)
            if kind in "TDBRVWC":
                self.defined.setdefault(source, {})[name] = kind
            elif kind in "Uwv":
                self.used.setdefault(source, set()).add(name)
        self.where = {}
        for source, names in self.defined.items():
            for name in names:
                self.where.setdefault(name, []).append(source)

    def judged(self, findings):
        """The findings of a check that needs all objects. Where some are missing nothing can be said but that: the
        check fails."""
        if self.missing:
            return [f"{len(self.missing)} objects are missing (make all tests makes them), the first is that of "
                    f"{self.missing[0]}"]
        return findings

    def definer(self, user, name):
        """The source that a reference means: of several definitions the nearest."""
        found = [s for s in self.where.get(name, ()) if not s.startswith("tests/") or user.startswith("tests/")]
        if not found:
            return None

        def distance(source):
            return -len(os.path.commonpath([source, user]))
        # The collector is a program of its own: nothing outside of it means its functions.
        inside = [s for s in found if s.startswith("client/collect/") == user.startswith("client/collect/")] or found
        return min(inside, key=distance)

    def edges(self):
        """(user, definer) of every reference between two sources of the product."""
        for user, names in self.used.items():
            if user.startswith("tests/"):
                continue
            for name in names:
                target = self.definer(user, name)
                if target and target != user and not target.startswith("tests/"):
                    yield user, target, name
