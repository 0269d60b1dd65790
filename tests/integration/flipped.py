"""A bit of the database flips: whatever is read afterwards is right, or refused in words.

flipped.py [FLIPS]: bits for each table and index; without it, one bit in a few of them."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import shop
from harness import PROFCTL, Daemon, Tap, until

DAY = 86400
HOT = "\n".join(f"__attribute__((noinline)) int f{i}(int i) {{ return n += i; }}" for i in range(60))


def settled(d):
    """All single uploads became sums."""
    return until(lambda: json.loads(d.get("/api/v1/status")[2])["raw_uploads"] == 0)


def fill(d, exe, spin):
    """Uploads of several days that became sums, recent ones, symbols, labels, and a process that is counted still."""
    for seed, (label, age) in enumerate((("1.0", 3 * DAY), ("1.1", 0)), 1):
        shop.fleet(d, exe, seed, label, 1, 0, shop.NOW - age, labels=lambda p: {"zone": f"z{p % 5}"})
        if age:
            assert settled(d)
    builds = [shop.build_id(exe), shop.build_id(spin)]
    process = subprocess.Popen([PROFCTL, "run", "--", spin], env=d.env, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    until(lambda: any(r["build_id"] == builds[1] for r in d.json("builds", "--json")["rows"]))
    return builds, process


def ask(d, builds):
    """target → (status, what the answer says). Times of now, and what a live process has done since, are left out."""
    out = {}
    for target in ("/api/v1/builds", "/api/v1/labels", "/api/v1/versions", "/api/v1/hosts", "/api/v1/functions",
                   *(f"/api/v1/builds/{b}/{what}" for b in builds
                     for what in ("report?limit=0", "counts", "groups?by=zone", "never-called", "cycles"))):
        status, headers, body = d.get(target)
        answer = json.loads(body) if "json" in headers["content-type"] else body.hex()
        if target == "/api/v1/hosts":
            for row in answer.get("rows", []):
                row.pop("clock_ahead_seconds", None)
        out[target] = status, answer
    return out


def pages(path):
    """name of a table or index → its pages."""
    out = {}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        for name, page in db.execute("SELECT name, pageno FROM dbstat WHERE ncell > 0 OR pagetype = 'overflow'"):
            out.setdefault(name, []).append(page)
    db.close()
    return out


def flip(path, page, draw):
    with open(path, "r+b") as f:
        f.seek(4096 * (page - 1) + draw.randrange(4096))
        byte = f.read(1)[0]
        f.seek(-1, 1)
        f.write(bytes([byte ^ 1 << draw.randrange(8)]))


def judge(d, builds, right):
    """What is wrong, and how many answers were refused."""
    wrong, refused = [], 0
    degraded = None
    for target, (status, answer) in ask(d, builds).items():
        if (status, answer) == right[target]:
            continue
        degraded = degraded or json.loads(d.get("/readyz")[2])
        text = json.dumps(answer)
        if status == 200 and "damaged_database" not in degraded:
            wrong.append((target, text[:300], json.dumps(right[target][1])[:300]))
        elif "damaged_database" not in degraded and not ("damaged" in text or answer["code"] == "DAMAGED"):
            wrong.append((target, status, text[:300]))
        refused += 1
    return wrong, refused


def on_disk(tap, d, builds, flips, draw):
    """A bit of the file flips while profd does not run."""
    path = os.path.join(d.state, "profd.db")
    copy = os.path.join(d.folder, "whole.db")
    shutil.copy(path, copy)
    os.unlink(os.path.join(d.state, "lock"))  # as below: the hours until now are marked as restored
    d.start()
    right = ask(d, builds)
    d.stop()
    found = sorted(pages(copy).items())
    for name, numbers in found if flips else draw.sample(found, 8):
        for _ in range(flips or 1):
            for n in os.listdir(d.state):
                if n.startswith("profd.db"):
                    os.unlink(os.path.join(d.state, n))
            shutil.copy(copy, path)
            os.unlink(os.path.join(d.state, "lock"))
            page = draw.choice(numbers)
            flip(path, page, draw)
            os.truncate(d.log, 0)
            try:
                d.start()
            except RuntimeError as e:
                tap.point("damaged" in d.logged(), f"{name}, page {page}: profd does not start", e)
                continue
            wrong, refused = judge(d, builds, right)
            verify = d.ctl("verify")
            aside = b"damaged_database" in d.get("/readyz")[2]
            found_it = verify.returncode and "damaged" in verify.stdout + verify.stderr
            tap.point(not wrong and (aside or found_it),
                      f"{name}, page {page}: "
                      f"{'put aside' if aside else f'{refused} answers are refused'}, none is wrong",
                      (wrong, verify, d.logged()[-500:]))
            d.stop()


def in_blobs(tap, d, builds, draw, flips):
    """A bit of stored counts flipped before they were written, so that the page has the checksum of what is wrong."""
    path = os.path.join(d.state, "profd.db")
    d.start()
    right = ask(d, builds)
    d.stop()
    for table, column, key in (("upload", "counts", "number"), ("rollup", "counts", "id"), ("rollup", "spread", "id"),
                               ("object", "encoded", "id")):
        copy = os.path.join(d.folder, "one.db")
        wrong, refused, found = [], 0, 0
        shutil.copy(path, copy)
        for _ in range(10 * flips or 2):
            with sqlite3.connect(path) as db:
                for row, blob in draw.sample(db.execute(f"SELECT {key}, {column} FROM {table}").fetchall(), 1):
                    blob = bytearray(blob)
                    blob[draw.randrange(len(blob))] ^= 1 << draw.randrange(8)
                    db.execute(f"UPDATE {table} SET {column}=? WHERE {key}=?", (bytes(blob), row))
            db.close()
            d.start()
            bad, some = judge(d, builds, right)
            wrong, refused = wrong + bad, refused + some
            found += d.ctl("verify").returncode != 0
            d.stop()
            shutil.copy(copy, path)
        tap.point(not wrong, f"{table}.{column}: {refused} answers are refused, none is wrong; verify finds {found}",
                  wrong[:5])


def main():
    flips = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    seed = int(os.environ.get("SEED", time.time()))
    draw = random.Random(seed)
    with Tap() as tap, Daemon("--raw-age", "1s") as d:
        exe = shop.build(d.folder, "shop", HOT, "")
        spin = shop.build(d.folder, "spin", "", "* 0; } __attribute__((constructor)) static void s(void) { "
                          "for (int i = 0; i < 2000000000; i++) step(i)")
        builds, process = fill(d, exe, spin)
        d.options = ("--raw-age", "10h")
        d.stop()
        os.killpg(process.pid, signal.SIGKILL)  # profctl and the program, which would attach again
        process.communicate()
        d.start()  # once without the process, so that nothing is left to be noted of it
        until(lambda: not d.json("ps", "--json")["rows"])
        d.stop()
        print(f"# seed {seed}", flush=True)
        on_disk(tap, d, builds, flips, draw)
        shutil.copy(os.path.join(d.folder, "whole.db"), os.path.join(d.state, "profd.db"))
        os.unlink(os.path.join(d.state, "lock"))
        in_blobs(tap, d, builds, draw, flips)


main()
