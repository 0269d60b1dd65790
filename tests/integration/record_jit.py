"""profctl record and generated code: the functions that a program names in /tmp/perf-PID.map, of a real one and of a
program that generates code; and files that are none, of others, too large, or no text. Nothing says how generated code
is unwound: at its first and its last instruction the frame pointer is still, or again, that of its caller, and the
caller's caller is found."""
import os
import platform
import shutil
import tempfile

from harness import Daemon, Tap, run
from record_bed import account, adds_up, stored

RATE = 499
# Generates a function that counts down, at two addresses with two names, and calls both: 3 parts and 1 of the time.
GENERATES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
typedef void function(void);
static function *generate(uint8_t *at, uint64_t rounds)
{
    uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb9, 0,    0,    0,    0,   0,
                      0,    0,    0,    0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};
    memcpy(code + 6, &rounds, sizeof rounds);
    memcpy(at, code, sizeof code);
    return (function *)at;
}
__attribute__((noinline)) void caller(function *f) { f(); __asm__ volatile(""); }
static void write_map(const char *how, const char *path, const uint8_t *at)
{
    const char *other = how[0] == 's' ? "target" : path;
    FILE *f;
    if (strcmp(how, "fifo") == 0) {
        mkfifo(path, 0666);
        return;
    }
    unlink(other);
    f = fopen(other, "w");
    if (strcmp(how, "garbage") == 0) {
        for (unsigned i = 0; i < 3000000; i++) {
            fputc((int)(i * 2654435761u >> 13 & 0xff), f);
        }
        fputs("\nffffffffffffffff ff wraps\n1 0 empty\n-1 -1 negative\n", f);
    }
    fprintf(f, "%lx 30 stale\n%lx 20 dear %d\n%lx 20 cheap\n", (long)at, (long)at, 1, (long)at + 64);
    fclose(f);
    if (strcmp(how, "symlink") == 0) {
        (void)!symlink("target", path);
    } else if (strcmp(how, "other") == 0) {
        (void)!chown(path, 65534, 65534);
    } else if (strcmp(how, "large") == 0) {
        (void)!truncate(path, 1L << 30);
    }
}
int main(int n, char **arguments)
{
    char path[64];
    uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    function *dear = generate(at, 3000000), *cheap = generate(at + 64, 1000000);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    write_map(n > 1 ? arguments[1] : "good", path, at);
    while (clock() < CLOCKS_PER_SEC) {
        caller(dear);
        caller(cheap);
    }
    unlink(path);
    return 0;
}
"""


def build(folder):
    source, program = os.path.join(folder, "generates.c"), os.path.join(folder, "generates")
    with open(source, "w", encoding="utf-8") as f:
        f.write(GENERATES)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", program, source)
    assert done.returncode == 0, done.stderr
    return program


def sampled(d, folder, *command):
    done = d.ctl("record", "--verbose", "--rate", str(RATE), "--", *command, cwd=folder)
    return done, account(done.stderr)


def named(tap, what, program, folder, how):
    with Daemon() as d:
        done, a = sampled(d, folder, program, how)
        r, _ = stored(d, program)
        ticks = {f["name"]: f for f in r["functions"]}
        dear, cheap = (ticks.get(name, {}).get("self_seconds", 0) * RATE for name in ("dear 1", "cheap"))
        tap.point(done.returncode == 0 and adds_up(a) and a["outside"] <= 2, f"{what}: the ticks are in functions",
                  (done.stderr, sorted(ticks)))
        tap.point("stale" not in ticks and dear > cheap > 0, f"{what}: each has its name", (dear, cheap, sorted(ticks)))
        callers = {c["name"]: c["measured_samples"] for c in ticks.get("dear 1", {}).get("callers", ())}
        # one sample in 10,000 is at these instructions
        tap.point(callers.get("caller", 0) > 20 * callers.get("main", 0) and set(callers) <= {"caller", "main"},
                  f"{what}: the caller of generated code is known", callers)
        builds = [b["name"] for b in d.json("builds", "--all", "--json")["rows"]]
        tap.point("generated code" in builds, f"{what}: it is a build", builds)


def refused(tap, what, program, folder, how):
    with Daemon() as d:
        done, a = sampled(d, folder, program, how)
        r, _ = stored(d, program)
        names = {f["name"] for f in r["functions"]}
        tap.point(done.returncode == 0 and adds_up(a) and a["outside"] > 0.7 * (a["samples"] - a["lost"]),
                  f"{what}: the ticks are outside", (done.stderr, names))
        tap.point(not names & {"dear 1", "cheap", "stale"}, f"{what}: it names nothing", names)
        outside = next((f["self_seconds"] for f in r["functions"] if f["name"] == "[outside]"), 0)
        tap.point(outside > 0.7 * r["totals"]["seconds"] and "ticks-outside" not in r["provenance"]["inexact_reasons"],
                  f"{what}: their time is in the total", (outside, r["totals"], r["provenance"]))


SCRIPT = """
function spinning(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i ^ s); return s; }
function outer(n) { return spinning(n) + spinning(n / 2); }
const end = process.cpuUsage().user + 1500000;
let s = 0;
while (process.cpuUsage().user < end) s += outer(100000);
process.exitCode = s === 1 ? 1 : 0;
"""


def real(tap, folder):
    if not shutil.which("node"):
        return tap.skip("node --perf-basic-prof", "no node")
    path = os.path.join(folder, "script.js")
    with open(path, "w", encoding="utf-8") as f:
        f.write(SCRIPT)
    node = os.path.realpath(shutil.which("node"))
    with Daemon() as d:
        done, a = sampled(d, folder, node, "--perf-basic-prof", path)
        r, _ = stored(d, node)
        share = {f["name"]: f["measured_total"] / r["totals"]["seconds"] for f in r["functions"]
                 if "spinning" in f["name"] or "outer" in f["name"]}
        spinning, outer = (sum(s for n, s in share.items() if name in n) for name in ("spinning", "outer"))
        tap.point(done.returncode == 0 and adds_up(a), "node: every sample is accounted for", done.stderr)
        tap.point(spinning > 0.5 or outer > 0.5, "node: the time is in functions of the script", (share, a))


def main():
    with Tap() as tap, tempfile.TemporaryDirectory() as folder:
        real(tap, folder)
        if platform.machine() != "x86_64":
            return tap.skip("generated code", "it is of x86-64")
        program = build(folder)
        named(tap, "a file", program, folder, "good")
        named(tap, "1 GB", program, folder, "large")
        named(tap, "behind garbage", program, folder, "garbage")
        for how in ("fifo", "symlink"):
            refused(tap, f"a {how}", program, folder, how)
        if os.geteuid() == 0:
            refused(tap, "another user's", program, folder, "other")


main()
