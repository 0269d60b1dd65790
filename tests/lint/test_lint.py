#!/usr/bin/env python3
"""Lint finds what it should: it must name every violation in a copy of the tree that breaks each rule. A check that
finds nothing any more looks like a rule that is kept. Needs the objects of the build, as lint does."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tree import list_files  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(os.environ.get("PROFD_BUILD", "build/plain"))
done = 0


def point(ok, name, got=""):
    global done
    done += 1
    print(f"{'ok' if ok else 'not ok'} {done} - {name}")
    if not ok:
        print("".join(f"  # {line}\n" for line in str(got).splitlines()[:12]), end="")
    return ok


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def change(path, old, new):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if old not in text:
        point(False, f"{path} has {old!r}, which the test changes")
    write(path, text.replace(old, new, 1))


def build(path):
    """The object of a source, where the build would have put it."""
    target = f"build/{path[:-2].replace('client/collect/', 'collect/')}.o"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    subprocess.run(["cc", "-w", "-I.", "-Idaemon", "-Iclient", "-c", path, "-o", target], check=True)


def copy(folder):
    """The tree, its git, and links to the objects."""
    os.chdir(ROOT)
    for f in list_files():
        if os.path.isfile(f) and "/corpus/" not in f:
            os.makedirs(os.path.join(folder, os.path.dirname(f)), exist_ok=True)
            shutil.copyfile(f, os.path.join(folder, f))
    for at, _, names in os.walk(BUILD):
        for name in names:
            if name.endswith(".o"):
                target = os.path.join(folder, "build", os.path.relpath(at, BUILD))
                os.makedirs(target, exist_ok=True)
                os.symlink(os.path.join(at, name), os.path.join(target, name))
    os.chdir(folder)
    subprocess.run(["git", "init", "-q", "."], check=True)
    # Formatting takes longer than all else, so that only one directory is formatted.
    shutil.copyfile(".clang-format", "tests/programs/.clang-format")
    write(".clang-format", "DisableFormat: true\n")


def lint():
    return subprocess.run([sys.executable, "tests/lint/structure.py", "--root", ".", "--build", "build"],
                          capture_output=True, text=True)


def section(output, name):
    """What lint printed below the point whose name has these words, with the point itself."""
    found = re.search(rf"^(?:not )?ok \d+ - [^\n]*{re.escape(name)}[^\n]*(?:\n  # [^\n]*)*", output, re.M)
    return found.group(0) if found else ""


def expect(output, name, *finds):
    text = section(output, name)
    missing = [f for f in finds if f not in text]
    title = "; ".join(f.strip() for f in finds)
    point(text.startswith("not ok") and not missing, f"{name}: {title}", f"missing {missing}\n{text}")


def violations():
    """(name of the point, what it must say) of what is wrong in the tree afterwards."""
    write("extra/file", "")
    yield "the top level is closed", "extra"
    yield from allowances()

    guard = "#ifndef PROFD_ZZ_{0}\n#define PROFD_ZZ_{0}\n{1}\nint zz_{0}(void);\n#endif\n"
    write("daemon/core/zz_a.h", guard.format("a", '#include "core/zz_b.h"'))
    write("daemon/core/zz_b.h", guard.format("b", '#include "core/zz_a.h"'))
    write("daemon/core/zz_a.c", '#include "core/zz_a.h"\n#include "net/loop.h"\nint store_close(void);\n'
          "int zz_a(void)\n{\n    return zz_b() + store_close();\n}\nint zz_uncalled(void)\n{\n    return 1;\n}\n")
    # A table of functions is a reference, too, as is one to static data.
    write("daemon/core/zz_b.c", '#include "core/zz_b.h"\nstatic int (*const table[])(void) = {zz_a};\n'
          "int zz_b(void)\n{\n    return table[0]();\n}\n")
    build("daemon/core/zz_a.c")
    build("daemon/core/zz_b.c")
    yield "includes follow", "daemon/core/zz_a.c: may not include net/loop.h"
    yield "calls: no circles", "daemon/core/zz_a daemon/core/zz_b"
    yield "includes: no circles", "daemon/core/zz_a daemon/core/zz_b"
    yield "directories: no circles", "daemon/core"
    yield "has a caller outside of tests", "daemon/core/zz_a.c: zz_uncalled"

    # Objects of assembly are read, too, and those of another machine are not missed.
    stub = f"client/collect/zz_stub_{os.uname().machine}.S"
    write(stub, "\t.globl zz_stub\nzz_stub:\n\t.quad zz_slow\n\t.globl zz_uncalled_stub\nzz_uncalled_stub:\n")
    write("client/collect/zz_stub_other.S", "")
    write("client/collect/zz_slow.c", "extern char zz_stub[];\nconst char *zz_slow(void)\n{\n    return zz_stub;\n}\n")
    build(stub)
    build("client/collect/zz_slow.c")
    yield "calls: no circles", "client/collect/zz_slow client/collect/zz_stub"
    yield "has a caller outside of tests", f"{stub}: zz_uncalled_stub"

    # Characters count, not bytes: the first line of each is as long as it may be.
    wide = {"#": ("tests/collect/zz_wide.py", "tests/demo/zz_wide.sh"), "/*": ("daemon/web/zz_wide.css",),
            "//": ("daemon/core/zz_wide.h", "daemon/web/zz_wide.js", "tests/browser/zz_wide.mjs",
                   "tests/browser/zz_wide.ts"), "<!--": ("daemon/web/zz_wide.html",)}
    for f, mark in ((f, mark) for mark, files in wide.items() for f in files):
        write(f, f"{mark}{'ä' * (120 - len(mark))}\n{mark}{'ä' * (121 - len(mark))}\n")
        yield "columns", f"{f}:2: 121 columns"
    yield "headers have include guards", "daemon/core/zz_wide.h"

    write("daemon/core/zz_long.h", "#ifndef PROFD_ZZ_LONG\n" + "/* */\n" * 1499 + "#endif\n")
    yield "files ≤", "daemon/core/zz_long.h: 1501 lines"
    body = [f"    x += {n};\n" for n in range(241)]
    write("daemon/core/zz_function.c", f"int zz_long(int x)\n{{\n{''.join(body[:121])}}}\n"
          f"int zz_fits(int x)\n{{\n{''.join(body[121:])}}}\n")
    build("daemon/core/zz_function.c")
    yield "functions ≤", "daemon/core/zz_function.c:2: 121 lines"

    # A directory without a budget, one over its budget, and a budget without a directory.
    write("daemon/zz_size/zz_size.c", "/* no\n * code */\nint zz_size; // one\nconst char zz_slashes[] = \"// /*\";\n")
    write("daemon/zz_more/zz_more.c", "int zz_more;\nint zz_most;\n")
    for folder in ("daemon/zz_size", "daemon/zz_more"):
        write(f"{folder}/.may_include", "")
        build(f"{folder}/{folder[7:]}.c")
    with open("tests/lint/budgets", "a", encoding="utf-8") as f:
        f.write("daemon/zz_size 1\ndaemon/zz_gone 1\n")
    yield "within its budget", "daemon/zz_size: 2 code lines, at most 1"
    yield "within its budget", "daemon/zz_more: no budget"
    yield "within its budget", "daemon/zz_gone: has a budget but no code"

    write("tests/programs/zz_braces.c", "int f(int n)\n{\n    do {\n        n--;\n    } while (n > 9);\n    if (n)\n"
          "        return 1;\n    else\n        n = 2;\n    for (;;)\n        n++;\n    while (n)\n        ;\n}\n")
    for line, word in ((6, "if"), (8, "else"), (10, "for"), (12, "while")):
        yield "braces", f"tests/programs/zz_braces.c:{line}: {word}"
    if shutil.which("clang-format"):
        write("tests/programs/zz_format.c", "int  f( int n ){return n;}\n")
        yield "clang-format", "tests/programs/zz_format.c:1"

    lines = "".join(f"    x -= {n};\n" for n in range(6))
    write("daemon/core/zz_one.c", f"int zz_one(int x)\n{{\n{lines}    return x;\n}}\n")
    write("daemon/net/zz_two.c", f"int zz_two(int x)\n{{\n{lines.replace(' -= ', '  -=  ')}    return -x;\n}}\n")
    build("daemon/core/zz_one.c")
    build("daemon/net/zz_two.c")
    yield "share", "daemon/core/zz_one.c:3 and daemon/net/zz_two.c:3 share 6 lines"

    write("client/lib/utils.c", "#include <stdlib.h>\nint zz_number(const char *s)\n{\n    return atoi(s);\n}\n")
    build("client/lib/utils.c")
    yield "locale-bound", "client/lib/utils.c:4: atoi"
    yield "no utils.c", "client/lib/utils.c"
    write("tests/unit/zz_lost.c", "int zz;\n")
    yield "tests mirror the tree", "tests/unit/zz_lost.c"
    write("tests/integration/zz_silent.py", "import os\n")
    yield "at its head", "tests/unit/zz_lost.c: begins without a comment"
    yield "at its head", "tests/integration/zz_silent.py: begins without a docstring"
    yield from house()
    yield from manuals()


def house():
    """Called when the other files of violations() are there."""
    write("daemon/net/zz_a.h", "#ifndef PROFD_NET_ZZ_A\nstruct zz_tag {\n    int zz;\n};\nint zz_c(void);\n#endif\n")
    write("daemon/net/zz_internal.h", "#ifndef PROFD_NET_ZZ\nint zz_d(void);\nint zz_e(void);\n#endif\n")
    write("daemon/core/zz_tag.c", "/* Is it gone? */\n/* A list, of which one goes. */\n/* zz_missing.h says so. */\n"
          "/* net/symtab.h too. */\n"
          "struct zz_tag {\n    int zz;\n};\n")
    pieces = "".join(f"static int zz_piece_{n}(void)\n{{\n    return {n};\n}}\n" for n in range(2000))
    write("daemon/core/zz_pieces.c", f"{pieces}int zz_whole(void)\n{{\n    return "
          f"{' + '.join(f'zz_piece_{n}()' for n in range(2000))};\n}}\n")
    for f in ("zz_tag", "zz_pieces"):
        build(f"daemon/core/{f}.c")
    yield "has the directories of the design", "zz_more"
    yield "share a name", "zz_a: in daemon/core, daemon/net"
    yield "share a tag", "struct zz_tag: in daemon/core/zz_tag.c, daemon/net/zz_a.h"
    yield "only one prototype", "daemon/core/zz_b.h: only zz_b()"
    yield "at most one private header", "daemon/net/zz_internal.h"
    yield "that a comment names exists", "daemon/core/zz_tag.c:3: zz_missing.h"
    yield "that a comment names exists", "daemon/core/zz_tag.c:4: net/symtab.h"
    yield "asks a question", "daemon/core/zz_tag.c:1: Is it gone?"
    yield "'of which'", "daemon/core/zz_tag.c:2: A list, of which one goes."
    yield "are static and called once", " functions: "


def manuals():
    name = "of the manual pages are the same"
    change("daemon/profd.8", ".It Fl -raw-age", ".It Fl -raw-aged")
    yield name, "profd(8): --raw-age has no entry"
    yield name, "profd(8): the manual page has an entry for --raw-aged"
    change("daemon/profd.conf.5", ".It Cm raw-bytes", ".It Cm raw-bits")
    yield name, "profd.conf(5): raw-bytes has no entry"
    yield name, "profd.conf(5): the manual page has an entry for raw-bits"
    change("client/profctl/verb_report.c", '{"interval", \'i\'', '{"pace", \'i\'')
    yield name, "profctl-top(1): --pace has no entry"
    yield name, "profctl-top(1): the manual page has an entry for --interval"
    change("client/man/profctl-record.1", ".Op Fl -unwind Cm fp | table\n", "")
    yield name, "profctl-record(1), SYNOPSIS: it lacks --unwind"
    change("client/gprof/gprof_options.c", '{"brief", no_argument', '{"briefest", no_argument')
    yield name, "profctl-gprof(1): --briefest has no entry"
    change("proto/report_format.h", '"folded"', '"creased"')
    yield name, "profctl-report(1), --format: creased has no entry"
    change("daemon/profd.8", ".It Pa daemon/requests\n", ".It Pa daemon/requestz\n")
    yield name, "profd(8), SOURCE CODE: daemon/requests has no entry"
    change("client/profctl/profctl_main.c", "{&look, &verb_export}", "{&data, &verb_export}")
    yield name, "profctl(1): VERBS differs from the table of verbs"
    change("client/man/profctl-ps.1", "lists live processes.", "lists" + " processes" * 40 + ".")
    yield name, "client/man/profctl-ps.1: more than 40 words: profctl-ps lists processes"
    change("client/man/profctl-ps.1", ".Sh EXAMPLES\n", ".Sh EXAMPLE\n")
    yield name, "profctl-ps(1): the sections are NAME, SYNOPSIS, DESCRIPTION, OPTIONS, EXAMPLE, SEE ALSO"
    change("client/man/profctl-ps.1", ".Xr profctl-top 1", ".Xr profctl-tap 1")
    yield name, "client/man/profctl-ps.1: there is no profctl-tap(1)"
    os.rename("client/man/profctl-verify.1", "client/man/profctl-verity.1")
    yield name, "verify: no page client/man/profctl-verify.1"
    yield name, "client/man/profctl-verity.1: there is no verb verity"
    change("client/lib/spool.c", '"PROFD_SPOOL"', '"PROFD_SPOOLS"')
    yield name, "environment: PROFD_SPOOLS has no entry"
    change("proto/profd-protocol.7", ".Sh NAME\n", ".Sh NAME\n.Zz\n")
    if shutil.which("mandoc"):
        yield "well-formed", "profd-protocol.7"


def missing():
    """A source without an object fails, and is the only finding of checks that read objects."""
    write("daemon/core/zz_none.c", "int zz_none;\n")
    only = "1 objects are missing (make all tests makes them), the first is that of daemon/core/zz_none.c"
    yield "has an object", "daemon/core/zz_none.c"
    yield "calls: no circles", only
    yield "has a caller outside of tests", only


def allowances():
    """A kept function that has a caller, or no reason, fails as well."""
    with open("tests/lint/uncalled", "a", encoding="utf-8") as f:
        f.write("arena_new: no reason\nzz_gone:\n")
    yield "has a caller outside of tests", "arena_new is not needed any more"
    yield "has a caller outside of tests", "zz_gone without a reason"


def main():
    for case in (missing, violations):
        with tempfile.TemporaryDirectory() as folder:
            copy(folder)
            expected = list(case())
            found = lint()
            point(found.returncode == 1, f"{case.__name__}: lint fails", found.stdout[-400:] + found.stderr)
            for name, words in expected:
                expect(found.stdout, name, words)
            os.chdir(ROOT)
    print(f"1..{done}")


main()
