# not a test
"""gprof's manual's cycle example as a gmon.out for tests/programs/cycle."""
from harness import Gmon, bounds, symbols


def example(exe, path, ticks=(16, 102, 75), start=1, again=0):
    """Ticks of main, b and a. Arcs: start→main as often as start says, main→a 1, a→b 3, b→a 2, a→c 3, b→c 3, and a→a
    as often as again says."""
    at = {n: a for n, (a, _) in symbols(exe).items()}
    low, high = bounds(exe)
    g = Gmon(low, high, bins=(high - low) // 4)
    for name, ticks in zip(("main", "b", "a"), ticks):
        g.tick(at[name] + 16, ticks)
    for caller, callee, calls in (("_start", "main", start), ("main", "a", 1), ("a", "b", 3), ("b", "a", 2),
                                  ("a", "c", 3), ("b", "c", 3), ("a", "a", again)):
        if calls:
            g.arc(at[caller] + 16, at[callee], calls)
    return g.write(path)
