#!/usr/bin/env python3
"""The house keeps its shape: who includes whom, no circles, no giants, a closed top level. Prints TAP."""
import os
import re
import subprocess
import sys

FUNCTION_MAX, FILE_MAX, HEADER_MAX = 60, 400, 300
TOP = {"Makefile", "README.md", "LICENSE", "daemon", "client", "proto", "schema", "tests", "systemd"}
LIBC = set("""assert ctype errno fcntl float getopt grp inttypes limits link locale math poll search pwd sched semaphore signal stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib string strings syslog time threads unistd wchar endian byteswap dirent
fnmatch glob malloc netdb dlfcn setjmp""".split())
points = []


def point(ok, name, details=()):
    points.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(points)} - {name}")
    for line in list(details)[:40]:
        print(f"  # {line}")


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    return [f for f in out.splitlines() if os.path.exists(f)]


def rules_of(folder):
    """Allowed prefixes, forbidden headers, and exceptions by file-name prefix."""
    allowed, forbidden, special = [], [], []
    for line in open(f"{folder}/.may_include", encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if ":" in line:
            name, what = line.split(":", 1)
            special += [(name.strip(), w) for w in what.split()]
        else:
            for word in line.split():
                (forbidden if word.startswith("!") else allowed).append(word.lstrip("!"))
    return allowed, forbidden, special


def matches(include, rule):
    return include.startswith(rule[:-1]) if rule.startswith("<") else include.startswith(rule)


def includes_of(text):
    for bracket, name in re.findall(r'^\s*#\s*include\s*([<"])([^">]+)[">]', text, re.M):
        yield f"<{name}>" if bracket == "<" else name


def is_system(include):
    name = include[1:-1]
    return name.startswith(("sys/", "linux/", "netinet/", "arpa/", "asm/", "bits/", "net/")) or name[:-2] in LIBC


def check_includes(files, texts):
    bad, cache = [], {}
    for f in files:
        folder = os.path.dirname(f)
        if not os.path.exists(f"{folder}/.may_include"):
            bad.append(f"{folder}: no .may_include")
            continue
        allowed, forbidden, special = cache.setdefault(folder, rules_of(folder))
        base = os.path.basename(f)
        mine = allowed + [w for name, w in special if base.startswith(name)]
        for include in includes_of(texts[f]):
            if include in forbidden and base not in ("buffer.c", "arena.c", "buffer_number.c"):
                bad.append(f"{f}: {include} is forbidden in this room")
            elif not (include.startswith("<") and is_system(include)) and not any(matches(include, r) for r in mine):
                bad.append(f"{f}: may not include {include}")
    point(not bad, "includes follow .may_include", bad)


def check_circles(files, texts):
    """A module is a noun with its parts: x.h, x.c, and x_part.[ch] beside them; an edge is an include of another module's
    header."""
    nouns = {f[:-2] for f in files if f.endswith(".h")}

    def module(path):
        name = re.sub(r"\.[ch]$", "", path)
        folder, base = os.path.split(name)
        parts = base.split("_")
        for n in range(1, len(parts)):
            if os.path.join(folder, "_".join(parts[:n])) in nouns:
                return os.path.join(folder, "_".join(parts[:n]))
        return name
    headers = {}
    for f in files:
        if f.endswith(".h"):
            headers[re.sub(r"^(daemon|client)/", "", f)] = module(f)
            headers[f] = module(f)
    edges = {}
    for f in files:
        edges.setdefault(module(f), set()).update(headers[i] for i in includes_of(texts[f]) if i in headers and headers[i] != module(f))
    done, bad = set(), []
    for start in sorted(edges):
        path, on, stack = [], set(), [(start, iter(sorted(edges[start])))]
        if start in done:
            continue
        path.append(start), on.add(start)
        while stack:
            node, rest = stack[-1]
            for n in rest:
                if n in on:
                    bad.append(" → ".join(path[path.index(n):] + [n]))
                elif n not in done:
                    path.append(n), on.add(n)
                    stack.append((n, iter(sorted(edges.get(n, ())))))
                    break
            else:
                done.add(node), on.discard(node), path.pop(), stack.pop()
    point(not bad, "no modules include each other in a circle", bad)


def check_sizes(files, texts):
    long_files, long_functions = [], []
    for f in files:
        lines = texts[f].splitlines()
        most = HEADER_MAX if f.endswith(".h") else FILE_MAX
        if len(lines) > most:
            long_files.append(f"{f}: {len(lines)} lines, at most {most}")
        start = None
        for number, line in enumerate(lines, 1):
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start:
                if number - start - 1 > FUNCTION_MAX and line.strip() == "}":
                    long_functions.append(f"{f}:{start}: {number - start - 1} lines, at most {FUNCTION_MAX}")
                start = None
    point(not long_files, f"files ≤ {FILE_MAX} lines, headers ≤ {HEADER_MAX}", long_files)
    point(not long_functions, f"functions ≤ {FUNCTION_MAX} lines", long_functions)


def check_words(files, texts):
    banned = re.compile(r"\b(strcpy|strcat|sprintf|gets|alloca|strtok|atoi|atol|system|popen|tmpnam|mktemp)\s*\(")
    bad = [f"{f}:{n}: {m.group(1)}" for f in files for n, line in enumerate(texts[f].splitlines(), 1)
           for m in [banned.search(re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0]))] if m and not line.lstrip().startswith("*")]
    point(not bad, "no unbounded or locale-bound calls", bad)
    bad = [f for f in files if re.search(r"(^|/)(utils?|common|misc|helpers?)\.[ch]$", f)]
    point(not bad, "no utils.c, no common.h", bad)
    bad = [f for f in files if f.endswith(".h") and "#ifndef PROFD_" not in texts[f] and f != "client/profd.h"]
    point(not bad, "headers have include guards", bad)


def check_manuals(all_files):
    """Every long option of the programs stands in a manual page."""
    manuals = "".join(open(f, encoding="utf-8").read() for f in all_files if re.search(r"\.[1-8]$", f)).replace("\\-", "-")
    bad = []
    for f in ("daemon/config.c", "client/profctl.c"):
        text = "".join(open(g, encoding="utf-8").read() for g in all_files
                       if g == f or (f.startswith("client") and re.match(r"client/(verb_|profctl)[^/]*\.c$", g)))
        for option in sorted(set(re.findall(r'\{"([a-z][a-z0-9-]+)",\s*(?:no|required|optional)_argument', text))):
            if option not in manuals:
                bad.append(f"{f}: --{option} is in no manual page")
    pages = [f for f in all_files if re.search(r"\.[1-8]$", f)]
    point(not bad and pages, "every option has its place in a manual page", bad)
    out = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True)
    lines = [l for l in out.stdout.splitlines() if "STYLE" not in l]
    point(not lines, "manual pages are well-formed (mandoc -Tlint)", lines)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    everything = tracked()
    files = [f for f in everything if re.match(r"(daemon|client|proto)/.*\.[ch]$", f)]
    texts = {f: open(f, encoding="utf-8").read() for f in files}
    extra = {f.split("/")[0] for f in everything} - TOP
    extra = {e for e in extra if not e.startswith(".")}
    point(not extra, "the top level is closed", sorted(extra))
    check_includes(files, texts)
    check_circles(files, texts)
    check_sizes(files, texts)
    check_words(files, texts)
    check_manuals(everything)
    print(f"1..{len(points)}")
    return 0 if all(points) else 1


sys.exit(main())
