"""Manual pages beside the tables that the programs parse with: every option has an entry, and every entry an option."""
import json
import re
import subprocess
from tree import point

CONFIG = "daemon/config/config.h"
PROGRAMS = {"OF_PROFD": "daemon/profd.8", "OF_RELAY": "daemon/relay/profd-relay.8"}
VERBS = r"client/profctl/[a-z_]+\.c$"
COMMON = "client/profctl/profctl_parse.c"
GPROF = "client/gprof/gprof_options.c"
SHARED = "client/profctl/profctl_options.h"  # options of several verbs: OPTION_SINCE and the like
FORMATS = "proto/report_format.h"
DRAWN = "client/profctl/profctl_drawing.h"  # formats that profctl makes from dot


class Page:
    """The entries (.It) of a manual page in mdoc(7), each with the path of entries and sections that it stands in."""

    def __init__(self, tree, path):
        self.path, self.entries = path, []
        section, stack = "", []
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if re.match(r"\.S[hs] ", line):
                section = line[4:].strip()
            elif line.startswith(".Bl"):
                stack.append(None)
            elif line.startswith(".El") and stack:
                stack.pop()
            elif line.startswith(".It") and stack:
                stack[-1] = line[3:].strip()
                self.entries.append((number, section, tuple(s for s in stack[:-1] if s), stack[-1]))
        self.text = tree.text(path)


def options_of(entry):
    """The options that an entry names, as on a command line: -l, --label."""
    found = set()
    for piece in re.split(r"\bFl\b", entry)[1:]:
        piece = piece.strip()
        for word in re.split(r"\s+(?:,|\|(?= -))\s+", piece):
            match = re.match(r"(-?[A-Za-z0-9][\w-]*)", word)
            if match:
                found.add("-" + match.group(1))
    return found


def formats_of(tree):
    """The names of the table of formats."""
    return set(re.findall(r'\bX\(\w+, "([\w-]+)", "', tree.text(FORMATS)))


def with_shared(tree, table):
    """A table with the rows that its words OPTION_… stand for."""
    shared = {name: "{" + row + "}" for name, row in
              re.findall(r"#define (OPTION_\w+)\s+OPTION\((.*?)\)\n", tree.text(SHARED).replace("\\\n", " "))}
    return re.sub(r"\bOPTION_\w+", lambda m: shared.get(m.group(0), m.group(0)), table)


def rows(table):
    """(name, letter) of the rows {"name", 'l', …} of a table of options."""
    return [(name, letter) for name, letter in re.findall(r'\{\s*"([a-z][\w-]*)",\s*(?:\'(\w)\'|0)\s*,', table)]


def spelled(table):
    return {"--" + name for name, _ in table} | {"-" + letter for _, letter in table if letter}


def table_of(text, name):
    match = re.search(re.escape(name) + r"\[\w*\] = \{(.*?)\n\};", text, re.S)
    return match.group(1) if match else ""


def both_ways(what, have, said, bad):
    bad += [f"{what}: {o} has no entry in the manual page" for o in sorted(have - said)]
    bad += [f"{what}: the manual page has an entry for {o}, which there is not" for o in sorted(said - have)]


def check_daemon(tree, bad):
    config = re.findall(r'\bX\(\w+,\s*"([\w-]+)",\s*(\w+),\s*([A-Z_| ]+),', tree.text(CONFIG).replace("\\\n", ""))
    if not config:
        bad.append(f"{CONFIG}: no rows X(field, \"name\", kind, programs, …) were found")
    for program, path in PROGRAMS.items():
        if path not in tree.all:
            continue
        said = set().union(*(options_of(e) for _, s, _, e in Page(tree, path).entries if s == "DESCRIPTION"))
        have = {"--" + name for name, _, of in config if "OF_ALL" in of or program in of}
        both_ways(re.sub(r".*/(.*)\.(\d)", r"\1(\2)", path), have, said, bad)
    page = Page(tree, "daemon/profd.conf.5")
    said = {word for _, s, _, e in page.entries if s == "DESCRIPTION"
            for word in re.findall(r"[\w-]+", e.removeprefix("Cm "))}
    both_ways("profd.conf(5)", {name for name, kind, _ in config if not kind.startswith("ONLY_")}, said, bad)


def check_verbs(tree, bad):
    page = Page(tree, "client/profctl.1")
    entries = [(path, e) for _, s, path, e in page.entries if s == "DESCRIPTION"]
    common = spelled(rows(table_of(tree.text(COMMON), "common")))
    said = set().union(*(options_of(e) for path, e in entries if not path))
    both_ways("profctl(1)", common, said, bad)
    described = {}
    for path, e in entries:
        if not path and e.startswith("Cm "):
            for verb in re.findall(r"\bCm ([\w-]+)", e.split(" Op ")[0].split(" Cm ", 1)[0] + " " +
                                   " ".join(re.findall(r", (Cm [\w-]+)", e))):
                described[verb] = e
    have = {}
    for f in tree.product:
        if re.match(VERBS, f):
            text = tree.text(f)
            options = rows(with_shared(tree, table_of(text, "profctl_option options")))
            for body in re.findall(r"const struct profctl_verb \w+ = \{(.*?)\n\};", text, re.S):
                have[re.search(r'\.name = "([\w-]+)"', body).group(1)] = options if "options" in body else []
    if not have:
        bad.append(f"{VERBS}: no verb was found")
    both_ways("profctl(1)", set(have) | {"help", "version"}, set(described) | {"gprof"}, bad)
    for verb, table in have.items():
        if verb in described:
            options = spelled(table)
            said = set().union(*(options_of(e) for path, e in entries if path and path[0] == described[verb]))
            both_ways(f"profctl(1), {verb}", options - common, said - common, bad)
            synopsis = re.findall(rf"^\.Nm\n(\.Cm [\w |-]*\b{verb}\b[\w |-]*\n(?:\.(?!Nm|Sh).*\n)*)", page.text, re.M)
            named = set().union(*(options_of(line) for line in "".join(synopsis).splitlines()))
            bad += [f"profctl(1), SYNOPSIS of {verb}: it lacks --{name}" for name, letter in table
                    if not {"--" + name, "-" + letter} & (named | common)]
            bad += [f"profctl(1), SYNOPSIS of {verb}: there is no option {o}" for o in sorted(named - options - common)]
            if not synopsis:
                bad.append(f"profctl(1): SYNOPSIS lacks {verb}")
    drawn = set(re.search(r'DRAWING_FORMAT "([a-z|]+)"', tree.text(DRAWN)).group(1).split("|"))
    said = set().union(*(re.findall(r"[\w-]+", e.removeprefix("Cm ")) for path, e in entries
                         if len(path) == 2 and path[0] == described.get("report") and "-format" in path[1]))
    both_ways("profctl(1), report --format", formats_of(tree) | drawn, said, bad)


def check_gprof(tree, bad):
    text = tree.text(GPROF)
    long = re.findall(r'\{"([\w-]+)", (?:no|required|optional)_argument, NULL', text)
    short = re.search(r'short_options\[\] = "([^"]*)"', text).group(1).replace(":", "")
    page = Page(tree, "client/profctl.1")
    start = page.text.index(".Ss profctl gprof")
    section = page.text[start:page.text.index("Intended differences", start)]
    refused = section[section.index("are refused by name"):]
    said = set().union(*(options_of(e) for _, s, _, e in page.entries if s == "profctl gprof"))
    said |= set().union(*(options_of(line) for line in refused.splitlines()))
    both_ways("profctl(1), gprof", {"--" + name for name in long} | {"-" + letter for letter in short}, said, bad)


def check_environment(tree, bad):
    """Variables of our own that the sources read, and those that the manual pages name."""
    read, said = set(), set()
    for f in tree.product:
        if f.endswith(".c"):
            read |= set(re.findall(r'"(PROFD_[A-Z_]+)"', tree.text(f)))
    for f in tree.all:
        if re.search(r"^(daemon|client)/.*\.[1-8]$", f):
            said |= set(re.findall(r"\.(?:It )?Ev (PROFD_[A-Z_]+)", tree.text(f)))
            said |= set(re.findall(r"\.It Ev .*, (PROFD_[A-Z_]+)", tree.text(f)))
    both_ways("environment", read, said, bad)


def check_openapi(tree, bad):
    """The formats of reports are those of the table that renders them."""
    document = json.loads(tree.text("schema/openapi.json"))
    formats = formats_of(tree)
    for path, item in document["paths"].items():
        for parameter in item.get("get", {}).get("parameters", []):
            if "$ref" in parameter:
                parameter = document["components"]["parameters"][parameter["$ref"].split("/")[-1]]
            if path.endswith("/report") and parameter["name"] == "format":
                both_ways(f"openapi.json, {path} format", formats, set(parameter["schema"].get("enum", formats)), bad)


def check_manuals(tree):
    bad = []
    for check in (check_daemon, check_verbs, check_gprof, check_environment, check_openapi):
        check(tree, bad)
    point(not bad, "options, keys and formats of the programs and of the manual pages are the same", bad)
    pages = [f for f in tree.all if re.search(r"^(daemon|client|proto)/.*\.[1-8]$", f)]
    out = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True)
    lines = [line for line in out.stdout.splitlines() if "STYLE" not in line]
    point(pages and not lines, "manual pages are well-formed (mandoc -Tlint)", lines)
