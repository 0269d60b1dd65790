"""The files that lint reads, and the points that it prints."""
import os
import re
import subprocess

PRODUCT = re.compile(r"(daemon|client|proto)/.*\.[ch]$")
points = []


def point(ok, name, details=()):
    """Prints one TAP line, and the findings below it."""
    points.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(points)} - {name}")
    for line in list(details)[:40]:
        print(f"  # {line}")


def skip(name, why):
    points.append(True)
    print(f"ok {len(points)} - {name} # SKIP {why}")


def strip(text, strings=True):
    """The same text with blanks in place of comments and, if asked, of what strings and character constants hold."""
    def blank(match):
        found = match.group(0)
        if found[0] in "\"'" and not strings:
            return found
        if found[0] in "\"'":
            return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]
        return re.sub(r"[^\n]", " ", found)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def list_files():
    """The files that git tracks or would track, below the current directory; in an unpacked release, all but those that
    are built."""
    if os.path.exists(".git"):
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                             check=True)
        return sorted(f for f in out.stdout.splitlines() if os.path.isfile(f))
    return sorted(os.path.normpath(os.path.join(where, name)) for where, folders, names in os.walk(".")
                  for name in names if not re.match(r"\./build(/|$)|.*/__pycache__$", where))


class Tree:
    """The files of the sources."""

    def __init__(self):
        self.all = list_files()
        self.product = [f for f in self.all if PRODUCT.match(f)]
        self.c = [f for f in self.all if re.search(r"\.[ch]$", f) and "/corpus/" not in f]
        self.texts, self.codes = {}, {}

    def text(self, path):
        if path not in self.texts:
            with open(path, encoding="utf-8") as f:
                self.texts[path] = f.read()
        return self.texts[path]

    def code(self, path):
        """The C of a file without comments and contents of strings; lines and columns are those of the file."""
        if path not in self.codes:
            self.codes[path] = strip(self.text(path))
        return self.codes[path]

    def includes(self, path):
        """The headers that a file includes: <stdio.h>, or the path between the quotation marks."""
        for bracket, name in re.findall(r'^\s*#\s*include\s*([<"])([^">]+)[">]', self.text(path), re.M):
            yield f"<{name}>" if bracket == "<" else name

    def headers(self):
        """Paths of the product's headers by every name under which a file may include them."""
        named = {}
        for f in self.product:
            if f.endswith(".h"):
                named[f] = f
                named[re.sub(r"^(daemon|client)/", "", f)] = f
        return named
