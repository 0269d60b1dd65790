"""Manual pages beside the tables that the programs parse with: every option has an entry, and every entry an option."""
import html
import json
import os
import re
import subprocess
from tree import point

CONFIG = "daemon/base/config.h"
PROGRAMS = {"OF_PROFD": "daemon/profd.8", "OF_RELAY": "daemon/relay/profd-relay.8"}
VERBS = r"client/profctl/[a-z_]+\.c$"
COMMON = "client/profctl/profctl.c"
OVERVIEW = "client/profctl.1"
OVERVIEW_MOST = 300  # lines
WORDS_MOST = 40  # of a sentence
PAGES = r"client/man/profctl-([\w-]+)\.1"
MANUAL = r"^(daemon|client|proto)/.*\.[1-8]$"
GPROF = "client/gprof/gprof_options.c"
SHARED = "client/profctl/profctl.h"  # options of several verbs: OPTION_SINCE and the like
FORMATS = "proto/report_format.h"
DRAWN = "client/profctl/verb_report.c"  # formats that profctl makes from dot


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
    """A table with the rows that its words OPTION_… and OPTIONS_… stand for."""
    text = tree.text(SHARED).replace("\\\n", " ")
    for name, words in re.findall(r"#define (OPTIONS_\w+)\s+(OPTION_.*)\n", text):
        table = table.replace(name, words)
    shared = {name: "{" + row + "}" for name, row in re.findall(r"#define (OPTION_\w+)\s+OPTION\((.*?)\)\n", text)}
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


def verbs_of(tree):
    """The table of each verb's options, by the name of the verb, and the groups: [title, [verb, …]] in their order."""
    tables, named = {}, {}
    for f in tree.product:
        if re.match(VERBS, f):
            text = tree.text(f)
            for struct, body in re.findall(r"const struct profctl_verb (\w+) = \{(.*?)\n\};", text, re.S):
                named[struct] = re.search(r'\.name = "([\w-]+)"', body).group(1)
                table = re.search(r"OPTIONS\((\w+)\)", body)
                tables[named[struct]] = rows(with_shared(tree, table_of(text, f"profctl_option {table.group(1)}"))) \
                    if table else []
    main = tree.text(f"{os.path.dirname(COMMON)}/profctl_main.c")
    titles = dict(re.findall(r'\b(\w+) = \{"\w+",\s*"([^"]+)"\}', main))
    groups = []
    for group, struct in re.findall(r"\{&(\w+), &(\w+)\}", main):
        if not groups or groups[-1][0] != titles[group]:
            groups.append((titles[group], []))
        groups[-1][1].append(named[struct])
    return tables, groups


def check_overview(tree, groups, common, bad):
    """profctl(1) has the common options, and the verbs by group as `profctl help` prints them."""
    page = Page(tree, OVERVIEW)
    both_ways("profctl(1)", common, set().union(*(options_of(e) for _, s, _, e in page.entries if s == "OPTIONS")), bad)
    shown = []
    for title, verb in re.findall(r"^\.It (?:Sy (.*)|Xr profctl-([\w-]+) 1 Ta .*)$",
                                  page.text.split(".Sh VERBS\n")[1].split(".Sh ")[0], re.M):
        if title:
            shown.append((title, []))
        else:
            shown[-1][1].append(verb)
    if shown != groups:
        bad.append(f"profctl(1): VERBS differs from the table of verbs: {shown} instead of {groups}")
    lines = page.text.count("\n")
    if lines > OVERVIEW_MOST:
        bad.append(f"{OVERVIEW}: {lines} lines, at most {OVERVIEW_MOST}")


def check_verb(tree, path, verb, table, common, bad):
    page, name, options = Page(tree, path), f"profctl-{verb}(1)", spelled(table)
    sections = re.findall(r"^\.Sh (.*)", page.text, re.M)
    wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", *["OPTIONS"] * bool(table), "EXAMPLES", "SEE ALSO"]
    if [s for s in sections if s in wanted] != wanted:
        bad.append(f"{name}: the sections are {', '.join(sections)}, not {', '.join(wanted)}")
    said = set().union(*(options_of(e) for _, s, _, e in page.entries if s == "OPTIONS"))
    both_ways(name, options - common, said - common, bad)
    synopsis = page.text[page.text.index(".Sh SYNOPSIS"):page.text.index(".Sh DESCRIPTION")]
    named = set().union(*(options_of(line) for line in synopsis.splitlines()))
    bad += [f"{name}, SYNOPSIS: it lacks --{o}" for o, letter in table
            if not {"--" + o, "-" + letter} & (named | common)]
    bad += [f"{name}, SYNOPSIS: there is no option {o}" for o in sorted(named - options - common)]
    if not re.search(rf"^\.Nm profctl {verb}\b", synopsis, re.M) or f".Nm profctl-{verb}\n" not in page.text:
        bad.append(f"{name}: NAME or SYNOPSIS lacks {verb}")


def check_verbs(tree, bad):
    tables, groups = verbs_of(tree)
    common = spelled(rows(table_of(tree.text(COMMON), "common")))
    check_overview(tree, groups, common, bad)
    pages = {m.group(1): f for f in tree.all if (m := re.fullmatch(PAGES, f))}
    bad += [f"{verb}: no page client/man/profctl-{verb}.1" for verb in sorted({*tables, "gprof"} - set(pages))]
    bad += [f"{pages[verb]}: there is no verb {verb}" for verb in sorted(set(pages) - {*tables, "gprof"})]
    for verb in sorted((set(pages) & set(tables)) - {"gprof"}):
        check_verb(tree, pages[verb], verb, tables[verb], common, bad)
    drawn = set(re.search(r'DRAWING_FORMAT "([a-z|]+)"', tree.text(DRAWN)).group(1).split("|"))
    said = set().union(*(re.findall(r"[\w-]+", e.removeprefix("Cm ")) for _, _, path, e in
                         Page(tree, pages["report"]).entries if len(path) == 1 and "-format" in path[0]))
    both_ways("profctl-report(1), --format", formats_of(tree) | drawn, said, bad)


def check_sentences(tree, bad):
    """Sentences can be read once."""
    for f in (f for f in tree.all if re.search(MANUAL, f)):
        text = subprocess.run(["mandoc", "-Thtml", "-Ofragment", f], capture_output=True, text=True).stdout
        text = re.sub(r"<pre>.*?</pre>|<table class=\"Nm\">.*?</table>", "\0", text, flags=re.S)
        text = re.sub(r"</?(p|dt|dd|li|h1|h2|div|table|td|tr)\b[^>]*>", "\0", text)
        for part in html.unescape(re.sub(r"<[^>]*>", "", text)).split("\0"):
            for sentence in re.split(r"(?<=[\w)”’%][.!?])\s+", " ".join(part.split())):
                if len(sentence.split()) > WORDS_MOST:
                    bad.append(f"{f}: more than {WORDS_MOST} words: {sentence[:60]}…")


def check_references(tree, bad):
    """Each of our pages that another one names exists."""
    pages = {os.path.basename(f) for f in tree.all if re.search(MANUAL, f)}
    for f in tree.all:
        if re.search(MANUAL, f):
            bad += [f"{f}: there is no {name}({section})" for name, section in
                    re.findall(r"\bXr ((?:profd|profctl|libprofd)[\w.-]*) (\d)", tree.text(f))
                    if f"{name}.{section}" not in pages]


def check_directories(tree, bad):
    """profd(8) says what each directory of the daemon contains."""
    section = tree.text("daemon/profd.8").split(".Sh SOURCE CODE\n")[1].split("\n.Sh ")[0]
    have = {os.path.dirname(f) for f in tree.all if f.startswith("daemon/") and f.count("/") > 1}
    both_ways("profd(8), SOURCE CODE", have, set(re.findall(r"daemon/\w+", section)), bad)


def check_gprof(tree, bad):
    text = tree.text(GPROF)
    long = re.findall(r'\{"([\w-]+)", (?:no|required|optional)_argument, NULL', text)
    short = re.search(r'short_options\[\] = "([^"]*)"', text).group(1).replace(":", "")
    page = Page(tree, "client/man/profctl-gprof.1")
    refused = page.text[page.text.index("are refused by name"):page.text.index("Intended differences")]
    said = set().union(*(options_of(e) for _, s, _, e in page.entries if s == "OPTIONS"))
    said |= set().union(*(options_of(line) for line in refused.splitlines()))
    both_ways("profctl-gprof(1)", {"--" + name for name in long} | {"-" + letter for letter in short}, said, bad)


def check_environment(tree, bad):
    """Variables of our own that the sources read, and those that the manual pages name."""
    read, said = set(), set()
    for f in tree.product:
        if f.endswith(".c"):
            read |= set(re.findall(r'"(PROFD_[A-Z_]+)"', tree.text(f)))
    for f in tree.all:
        if re.search(MANUAL, f):
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
    for check in (check_daemon, check_verbs, check_sentences, check_references, check_directories, check_gprof,
                  check_environment, check_openapi):
        check(tree, bad)
    point(not bad, "options, keys and formats of the programs and of the manual pages are the same", bad)
    pages = [f for f in tree.all if re.search(MANUAL, f)]
    out = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True)
    lines = [line for line in out.stdout.splitlines() if "STYLE" not in line]
    point(pages and not lines, "manual pages are well-formed (mandoc -Tlint)", lines)
