"""The shape of files: width, size, format, braces."""
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from tree import point, skip

COLUMNS, FUNCTION_MAX, FILE_MAX = 120, 120, 1500
WIDE = re.compile(r"\.([chS]|py|sh|proto|m?js|ts|css|html)$|\.may_include$")
FORMATTER = "14"  # the version of clang-format that .clang-format was written for; others break lines elsewhere


def check_width(tree):
    bad = []
    for f in tree.all:
        if WIDE.search(f) and "/corpus/" not in f:
            bad += [f"{f}:{n}: {len(line)} columns" for n, line in enumerate(tree.text(f).splitlines(), 1)
                    if len(line) > COLUMNS]
    name = "C, assembly, Python, shell, JavaScript, TypeScript, CSS and HTML"
    point(not bad, f"lines ≤ {COLUMNS} columns in {name}", bad)


def check_arguments(tree):
    """A call takes only some ten thousand arguments: a list of any length is walked."""
    spread = re.compile(r"\b(max|min|push|unshift|append|prepend|replaceChildren|replaceWith)\(([^()]*, )?\.\.\.")
    bad = [f"{f}:{n}: {line.strip()}" for f in tree.all if f.startswith("daemon/web/") and f.endswith(".js")
           for n, line in enumerate(tree.text(f).splitlines(), 1) if spread.search(line)]
    point(not bad, "the dashboard spreads no list of any length into arguments", bad)


def check_sizes(tree):
    long_files, long_functions = [], []
    for f in tree.product:
        lines = tree.text(f).splitlines()
        if len(lines) > FILE_MAX:
            long_files.append(f"{f}: {len(lines)} lines, at most {FILE_MAX}")
        start = None
        for number, line in enumerate(lines, 1):
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start:
                if number - start - 1 > FUNCTION_MAX and line.strip() == "}":
                    long_functions.append(f"{f}:{start}: {number - start - 1} lines, at most {FUNCTION_MAX}")
                start = None
    point(not long_files, f"files ≤ {FILE_MAX} lines", long_files)
    point(not long_functions, f"functions ≤ {FUNCTION_MAX} lines", long_functions)


def after_parentheses(code, at):
    """Where the parenthesis that opens at or after `at` has closed."""
    depth, i = 0, code.index("(", at)
    while True:
        depth += (code[i] == "(") - (code[i] == ")")
        i += 1
        if not depth:
            return i


def ends_do(code):
    """Whether the closing brace that the code ends with is that of do { }."""
    depth = 0
    for i in range(len(code) - 1, -1, -1):
        depth += (code[i] == "}") - (code[i] == "{")
        if not depth:
            return bool(re.search(r"\bdo\s*$", code[:i]))
    return False


def bare_bodies(code):
    """The lines on which an if, else, for, while or do has a body without braces."""
    code = re.sub(r"\\\n", " \n", code)
    for m in re.finditer(r"\b(if|else|for|while|do|switch)\b", code):
        line_start = code.rfind("\n", 0, m.start()) + 1
        if re.match(r"\s*#", code[line_start:m.end()]):
            continue
        word, at = m.group(1), m.end()
        if word in ("if", "for", "while", "switch"):
            if not re.match(r"\s*\(", code[at:]):
                continue
            at = after_parentheses(code, at)
        body = code[at:].lstrip()
        if word == "while" and code[:m.start()].rstrip().endswith("}") and ends_do(code[:m.start()].rstrip()):
            continue
        if body.startswith("{") or word == "else" and re.match(r"if\b", body):
            continue
        yield code.count("\n", 0, m.start()) + 1, word


def check_braces(tree):
    bad = [f"{f}:{line}: {word} without braces" for f in tree.c for line, word in bare_bodies(tree.code(f))]
    point(not bad, "every body has braces", bad)


def check_format(tree):
    name = "C is formatted as .clang-format says"
    if not shutil.which("clang-format"):
        skip(name, "clang-format is not installed")
        return
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    if not re.search(rf"version {FORMATTER}\.", version):
        skip(name, f"{version.strip()}, and not version {FORMATTER}")
        return

    def run(files):
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", *files], capture_output=True, text=True)
        return [line for line in done.stderr.splitlines() if " error: " in line]
    parts = [tree.c[i::8] for i in range(8) if tree.c[i::8]]
    with ThreadPoolExecutor(2) as pool:
        bad = [line for lines in pool.map(run, parts) for line in lines]
    point(not bad, name, bad)
