"""Words that comments, messages, manual pages and names must not use: metaphors, riddles, and terms that were replaced.
The file `words` beside this one has them."""
import re
from tree import point

WORDS = "tests/lint/words"
PROSE = re.compile(r"(daemon|client|proto|schema|systemd)/.*\.([1-8]|js|css|html|json|sql|proto|service|map|S)$|"
                   r"README\.md$|Makefile$|.*/\.may_include$")


class Word:
    def __init__(self, line):
        self.kind, self.pattern, self.instead = re.split(r"\s{2,}", line.strip(), maxsplit=2)
        self.regex = re.compile(self.pattern if self.kind == "name" else rf"\b(?:{self.pattern})\b", re.I)
        self.found = []


def prose_of(tree, path):
    """(line number, text) of the prose in a file: of C the comments and the strings."""
    text = tree.text(path)
    if not path.endswith((".c", ".h")):
        yield from enumerate(text.splitlines(), 1)
        return
    for match in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', text, re.S):
        line_start = text.rfind("\n", 0, match.start()) + 1
        if text[line_start:].startswith("#include"):
            continue
        number = text.count("\n", 0, match.start()) + 1
        # One comment is one text, so that a line break does not hide two words that stand together.
        yield number, re.sub(r"\s*\n\s*\*?\s*", " ", match.group(0))


def read_words():
    with open(WORDS, encoding="utf-8") as f:
        return [Word(line) for line in f if not line.startswith("#")]


def find(tree, words):
    for f in tree.all:
        if not (f in tree.product or PROSE.match(f)):
            continue
        for number, text in prose_of(tree, f):
            for w in words:
                if w.kind == "prose":
                    w.found += [f"{f}:{number}: {m.group(0)}" for m in w.regex.finditer(text)]
        for w in words:
            if w.kind == "name":
                w.found += [f"{f}: the name of the file"] * bool(w.regex.search(f))
                if f in tree.product:
                    names = set(re.findall(r"[A-Za-z_]\w*", tree.code(f)))
                    w.found += [f"{f}: {name}" for name in sorted(names) if w.regex.search(name)]


def check_prose(tree):
    words, bad = read_words(), []
    find(tree, words)
    for w in words:
        if w.found:
            bad.append(f"{w.pattern}: {len(w.found)} times. Instead: {w.instead}")
            bad += [f"    {place}" for place in w.found[:6]]
    point(not bad, "no banned words in comments, messages, manual pages and names", bad)
