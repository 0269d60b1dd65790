"""Public functions that nothing but tests calls. Reasons to keep one stand in the file `uncalled` beside this one."""
import os
import re
from tree import point

KEPT = "tests/lint/uncalled"
MAPS = ("client/libprofd.map", "client/collect/libprofd-collect.map")


def exported(tree):
    """Patterns of the names that the libraries' version scripts export."""
    patterns = []
    for f in MAPS:
        if f in tree.all:
            text = re.sub(r"/\*.*?\*/|#.*", "", tree.text(f), flags=re.S)
            for names in re.findall(r"global:(.*?)(?:local:|\})", text, re.S):
                patterns += [re.escape(n.strip()).replace(r"\*", ".*") for n in names.split(";") if n.strip()]
    return re.compile("|".join(patterns) or r"(?!)")


def kept():
    names = {}
    if os.path.exists(KEPT):
        with open(KEPT, encoding="utf-8") as f:
            for line in f:
                if line.split("#")[0].strip():
                    name, _, reason = line.partition(":")
                    names[name.strip()] = reason.strip()
    return names


def uncalled(tree, symbols):
    """{function: source} of functions with external linkage that only tests refer to, or nothing."""
    used = {}
    for user, target, name in symbols.edges():
        used.setdefault((target, name), user)
    public, found = exported(tree), {}
    # Declared once in a header; a second time it is called there, by an inline function.
    elsewhere = " ".join(tree.code(f) for f in tree.product if f.endswith(".h"))
    for source, names in symbols.defined.items():
        if source.startswith("tests/"):
            continue
        for name, kind in names.items():
            if kind not in "TDBRC" or name == "main" or public.fullmatch(name) or (source, name) in used:
                continue
            # A function that is inlined wherever its own file calls it leaves no trace in the object.
            word = re.compile(rf"\b{re.escape(name)}\b")
            inside = source.endswith(".c") and len(word.findall(tree.code(source))) > 1
            if not inside and len(word.findall(elsewhere)) < 2:
                found[name] = source
    return found


def check_callers(tree, symbols):
    found, reasons = uncalled(tree, symbols), kept()
    bad = [f"{source}: {name} has no caller outside of tests" for name, source in sorted(found.items())
           if name not in reasons]
    bad += [f"{KEPT}: {name} is not needed any more" for name in sorted(set(reasons) - set(found))]
    bad += [f"{KEPT}: {name} without a reason" for name, reason in sorted(reasons.items()) if not reason]
    point(not symbols.judged(bad), "every public function has a caller outside of tests", symbols.judged(bad))
