"""The list of figures in profd(8) from the output of `make bench`: table.py OUTPUT prints it; table.py OUTPUT
daemon/profd.8 puts it in place of the list in the section FIGURES. A row that was not measured says so."""
import re
import sys

SECTION, HEAD, END = ".Sh FIGURES\n", ".Bl -tag -width Ds", ".El"
ABSENT = "not measured"


def number(value):
    """Two digits below 1, else three."""
    return f"{value:.2g}" if value < 1 else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Output:
    def __init__(self, text):
        self.lines = text.splitlines()

    def find(self, label):
        """What follows the label in its line; None if there is no such line."""
        return next((line[len(label):] for line in self.lines if line.startswith(label)), None)

    def values(self, label, pattern):
        """The numbers of the pattern's groups behind the label; None if they are not there."""
        rest = self.find(label)
        match = rest and re.search(pattern, rest)
        return [float(g.replace(",", "")) for g in match.groups()] if match else None


class Pair:
    """A row with a peer: bench.py's "1.234 s   0.0123 s", bench_graph.py's, where the peer may not have ended."""

    def __init__(self, output, label):
        rest = output.find(label) or ""
        peer = re.match(r"\s*(?:([\d.]+) s|> (\d+) s|(–|\S+))\s+([\d.]+) s", rest)
        memory = re.search(r"(\d+) MiB", rest)
        self.there = peer is not None
        self.peer = float(peer[1]) if peer and peer[1] else None
        self.patience = peer and peer[2]
        self.ours = float(peer[4]) if peer else None
        self.memory = float(memory[1]) if memory else None

    def gprof(self):
        return (f"{number(self.peer)} s" if self.peer else f"not within {self.patience} s" if self.patience else "–")

    def profd(self):
        return f"{number(self.ours)} s"

    def ratio(self):
        ratio = self.peer / self.ours if self.peer else None
        return "" if not ratio else f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×"


def row(what, gprof, profd, ratio):
    """An item of the list in mdoc(7)."""
    cells = [f"gprof: {gprof}"] * bool(gprof and gprof not in ("–", ABSENT)) + [f"profd: {profd}"] * bool(profd)
    cells += [f"ratio: {ratio}"] * bool(ratio)
    return f".It {what}\n" + (ABSENT if ABSENT in (gprof, profd) else "; ".join(cells)).replace(" ×", "") + "."


def paired(output, what, *labels):
    pairs = [Pair(output, label) for label in labels]
    if not all(p.there for p in pairs):
        return row(what, ABSENT, "", "")
    return row(what, *(" and ".join(c for c in cells if c) for cells in
                       ([p.gprof() for p in pairs], [p.profd() for p in pairs], [p.ratio() for p in pairs])))


def million(output):
    pair = Pair(output, "1,000,000 functions, 10,000,000 arcs: first 200 entries (| head)")
    what = "1,000,000 functions, 10,000,000 arcs: first 200 entries"
    return (row(what, pair.gprof(), f"{pair.profd()}, {pair.memory / 1024:.1f} GB", pair.ratio()) if pair.there
            else row(what, ABSENT, "", ""))


def plain(what, values, text, gprof="–"):
    return row(what, gprof, text(*values), "") if values else row(what, ABSENT, "", "")


def month(output):
    label = "30 days of 20,000 functions, 160,000 arcs: JSON, top 200, "
    times = [output.values(label + which, r"([\d.]+) s") for which in ("cold", "warm")]
    return plain("30 days of that graph, JSON of the top 200, from sums by day and hour: daemon just started / again",
                 times[0] and times[1] and times[0] + times[1], lambda a, b: f"{number(a)} s / {number(b)} s")


def memory(output):
    kinds = ("idle", "half a frame sent", "8 uploads sent, no answer read", "a byte a second")
    found = [output.values(f"10,000 connections, {kind}", r"→ (\d+) MB") for kind in kinds]
    return plain("memory at 10,000 connections: idle, stopped in half a frame, not reading, a byte a second",
                 all(found) and [f[0] for f in found], lambda *mb: ", ".join(f"{m:.0f}" for m in mb) + " MB")


def dashboard(output, functions, what):
    times = {}
    for line in output.lines:
        match = re.match(rf"dashboard, {functions} functions: (.*?)\s+(\d+) ms", line)
        if match:
            times[match[1]] = float(match[2]) / 1000
    paints = [times.pop(f"content of the table, {which}", None) for which in ("nothing cached", "again")]
    steps = [s for name, s in times.items() if name.startswith(("sort", "filter", "a key", "a function"))]
    return plain(what, all(paints) and steps and [*paints, max(steps)],
                 lambda a, b, c: f"{number(a)} s / {number(b)} s / ≤ {number(c)} s")


def table(output):
    giant = "20,000 functions, 160,000 arcs, one giant cycle"
    files = output.values("gprof -s over files of the same profile, nothing durable", r"([\d,]+)/s")
    etag = output.values("the same again with its ETag (HTTP)", r"([\d.]+) s")
    burst = output.values("burst of 60 s, 100 connections", r"\s(\d+)/s")
    crowd = output.values("durable uploads, 10000 connections", r"\s(\d+)/s")
    lost = output.values("calls lost by glibc with 4 threads", r"(\d+) %")
    return [HEAD] + [
        paired(output, f"{giant}: profctl gprof -b, all text", "the same, without a daemon (profctl gprof -b)"),
        paired(output, "the same from the store: JSON, top 200 functions", "the same, JSON, top 200 functions"),
        paired(output, "the same from the store: all text in true mode",
               "full text report, 20,000 functions, 160,000 arcs, one cycle"),
        paired(output, "the same from the store: gprof's own bytes (report -f gprof)",
               "the same, gprof's own bytes (-f gprof)"),
        plain("the same again with its ETag, over HTTP", etag, lambda s: f"{s * 1000:.1f} ms"),
        paired(output, "80,000 functions without DWARF: all text",
               "80,000 functions, 320,000 arcs, no DWARF: all text"),
        paired(output, "fan-in of 40,000, and fan-out of 40,000: all text", "fan-in of 40,000: all text",
               "fan-out of 40,000: all text"),
        paired(output, "a chain of 400,000 calls: all text", "a chain of 400,000 calls: all text"),
        million(output),
        paired(output,
               "1,000 profiles of a busy interpreter delivered, committed and synced (gprof -s syncs nothing)",
               "1,000 profiles of a busy interpreter: delivered durably (profctl)"),
        paired(output, "the same merged and reported", "1,000 profiles: merged and reported"),
        month(output),
        plain("durable uploads a second for 60 s, 100 connections, the load generator beside the daemon", burst,
              lambda n: f"{n:,.0f}", f"{files[0]:,.0f} files/s, not durable" if files else "–"),
        plain("the same from 10,000 connections, one upload in flight each", crowd, lambda n: f"{n:,.0f}", ""),
        memory(output),
        dashboard(output, "20,000", "dashboard in headless Chromium, 20,000 functions: table shown / again / a sort, a "
                  "filter, a key, a function opened"),
        dashboard(output, "100,000", "the same with 100,000 functions"),
        plain("calls that glibc's collector loses with 4 threads, and so any gmon.out", lost, lambda share: "",
              f"{lost[0]:.0f} % of 8,000,000" if lost else ""),
        END]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = "\n".join(table(Output(f.read()))) + "\n"
    if len(sys.argv) < 3:
        print(rows, end="")
        return
    with open(sys.argv[2], encoding="utf-8") as f:
        text = f.read()
    begin = text.index(HEAD, text.index(SECTION))
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(text[:begin] + rows + text[text.index(f"\n{END}\n", begin) + len(END) + 2:])


main()
