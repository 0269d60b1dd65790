# not a test
"""gprof's manual's cycle example as a gmon.out for tests/programs/cycle."""
from harness import Gmon, bounds, symbols


def example(exe, path):
    """Ticks: main 16, b 102, a 75. Arcs: start→main 1, main→a 1, a→b 3, b→a 2, a→c 3, b→c 3."""
    at = {n: a for n, (a, _) in symbols(exe).items()}
    low, high = bounds(exe)
    g = Gmon(low, high, bins=(high - low) // 4)
    for name, ticks in (("main", 16), ("b", 102), ("a", 75)):
        g.tick(at[name] + 16, ticks)
    for caller, callee, calls in (("_start", "main", 1), ("main", "a", 1), ("a", "b", 3), ("b", "a", 2), ("a", "c", 3),
                                  ("b", "c", 3)):
        g.arc(at[caller] + 16, at[callee] + 4, calls)
    return g.write(path)
