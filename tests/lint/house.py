#!/usr/bin/env python3
"""The house: one name for each thing, headers with a subject, and comments that a reader need not read twice.

house.py     prints the findings"""
import os
import re
import sys
sys.dont_write_bytecode = True
from tree import Tree, point, strip  # noqa: E402

COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
FILE = re.compile(r"[\w/.-]*\w\.(?:c|h|sql|proto|js|css|inc)\b")
FOREIGN = ("profile.proto", "file.c", "elf.h", "cxxabi.h")  # files of others, and examples, that comments may name


def stem(path):
    return re.sub(r"(_internal)?\.[chS]$|_(x86_64|aarch64)\.S$", "", os.path.basename(path))


def check_directories(tree):
    """daemon/ has the directories of the design."""
    wanted = {"base", "core", "compat", "elf", "ingest", "live", "net", "query", "relay", "render", "requests", "store",
              "tier", "web", "writer"}
    found = {f.split("/")[1] for f in tree.all if re.match(r"daemon/\w+/", f)}
    point(found == wanted, "daemon/ has the directories of the design, and no others", sorted(found ^ wanted))


def check_names(tree):
    """No two files have a name, and no two structs have a tag."""
    places = {}
    for f in tree.product:
        if not os.path.basename(f).endswith("_internal.h"):
            places.setdefault(stem(f), set()).add(os.path.dirname(f))
    bad = [f"{name}: in {', '.join(sorted(folders))}" for name, folders in sorted(places.items()) if len(folders) > 1]
    point(not bad, "no two files of the product share a name", bad)
    tags = {}
    for f in tree.product:
        for tag in re.findall(r"\b(?:struct|union) (\w+)\s*\{", tree.code(f)):
            tags.setdefault(tag, []).append(f)
    bad = [f"struct {tag}: in {', '.join(files)}" for tag, files in sorted(tags.items()) if len(set(files)) > 1]
    point(not bad, "no two structs of the product share a tag", bad)


def check_headers(tree):
    bad = []
    for f in tree.product:
        if f.endswith(".h"):
            code = re.sub(r"^\s*#(?:[^\n\\]|\\.)*", "", tree.code(f), flags=re.M | re.S)
            code = re.sub(r"\{[^{}]*\}", "{}", re.sub(r"\{[^{}]*\}", "{}", code))
            prototypes = re.findall(r"^[a-z][\w \*]*?\b(\w+)\([^;{}]*\)(?: *__attribute__\(\(.*?\)\))*;", code, re.M)
            other = re.search(r"\{\}|\bextern\b", code) or re.search(r"^#define \w+[( ]", tree.text(f), re.M)
            if len(prototypes) == 1 and not other:
                bad.append(f"{f}: only {prototypes[0]}()")
    point(not bad, "no header has only one prototype", bad)
    private = {}
    for f in tree.product:
        if f.endswith("_internal.h"):
            private.setdefault(os.path.dirname(f), []).append(f)
    bad = [", ".join(files) for files in private.values() if len(files) > 1]
    point(not bad, "a directory has at most one private header", bad)


def comments(tree):
    for f in tree.product:
        text = tree.text(f)
        for m in COMMENT.finditer(text):
            if m.group(0).startswith("/"):
                yield f, text.count("\n", 0, m.start()) + 1, re.sub(r"\s*\n\s*\*?\s*", " ", m.group(0)).strip("/* ")


def check_comments(tree):
    known = {os.path.basename(f) for f in tree.all} | set(FOREIGN)
    stale, asked, chained = [], [], []
    for f, line, words in comments(tree):
        plain = strip(words)
        for name in FILE.findall(words):
            base = os.path.basename(name)
            # An upper-case part, as in DIR/SUBJECT.c, stands for any name.
            if base not in known and not re.search(r"[A-Z]", base) and len(base) > 4:
                stale.append(f"{f}:{line}: {name}")
            elif "/" in name and base in known and base not in FOREIGN and not any(
                    f"/{path}".endswith(f"/{name.lstrip('./')}") for path in tree.all):
                stale.append(f"{f}:{line}: {name}")
        if re.search(r"\w\?(?:\s|$)", plain):
            asked.append(f"{f}:{line}: {words[:90]}")
        if re.search(r"\bof which\b", plain):
            chained.append(f"{f}:{line}: {words[:90]}")
    point(not stale, "a file that a comment names exists", stale)
    point(not asked, "no comment asks a question", asked)
    point(not chained, "no comment says 'of which'", chained)


def check_house(tree):
    check_directories(tree)
    check_names(tree)
    check_headers(tree)
    check_comments(tree)


if __name__ == "__main__":
    check_house(Tree())
