"""What an ETag says: the same bytes. It says nothing of other users' uploads, and nothing of a state before a
restore."""
import json
import os
import re
import shutil

from harness import PROFCTL, PROFD, Daemon, Tap, private_mounts, programs, run, until
from example_gmon import example

MINE, OTHER = 60131, 60132


def as_user(d, uid, *arguments):
    env = dict(d.env, XDG_STATE_HOME="/nonexistent", HOME="/nonexistent", PROFD_SPOOL="/nonexistent/spool")
    return run("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", os.path.join(d.folder, "profctl"),
               *arguments,
               env=env, cwd=d.folder)


ASK = """
import os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX); s.settimeout(300); s.connect(sys.argv[1])
tag = f"If-None-Match: {sys.argv[4]}\\r\\n" if len(sys.argv) > 4 else ""
s.sendall(f"GET {sys.argv[3]} HTTP/1.1\\r\\nHost: localhost\\r\\n{tag}Connection: close\\r\\n\\r\\n".encode())
data = b""
while piece := s.recv(65536):
    data += piece
sys.stdout.buffer.write(data)
"""


def get(d, uid, target, tag=None):
    """(status, ETag, body) as that user sees them."""
    done = run("/usr/bin/python3", "-c", ASK, d.http, uid, target, *([tag] if tag else []), cwd="/", encoding="latin-1")
    head, _, body = done.stdout.partition("\n\n")
    found = re.search(r"(?mi)^etag: (.*?)\r?$", head)
    return int(head.split()[1]), found and found.group(1).strip(), body


def targets(build):
    one = f"/api/v1/builds/{build}"
    return [f"{one}/report", f"{one}/functions?name=main", f"{one}/counts", "/api/v1/builds", one, "/api/v1/labels",
            "/api/v1/functions",
            f"{one}/groups?by=a"]


def numbers(tag):
    """The decimal numbers that stand in a tag."""
    return [int(n) for n in re.findall(r"(?<![0-9a-f])[0-9]+(?![0-9a-f])", tag or "")]


def two_users(tap, d, exe, gmon):
    """MINE uploads after 0, 3 and 17 uploads of OTHER. Nothing in the tags may follow these numbers."""
    build = json.loads(as_user(d, OTHER, "builds", "--json").stdout)
    up = as_user(d, MINE, "upload", "-e", exe, gmon)
    tap.point(up.returncode == 0 and build["rows"] == [], "a user uploads", up.stderr)
    build = json.loads(as_user(d, MINE, "builds", "--json").stdout)["rows"][0]["build_id"]
    asked, series, steady = targets(build), {}, []
    for others in (0, 3, 17):
        before = {t: get(d, MINE, t) for t in asked}
        for _ in range(others):
            as_user(d, OTHER, "upload", "-e", exe, gmon)
        for t in asked:
            steady += [(t, before[t], now) for now in [get(d, MINE, t, before[t][1])] if before[t][1] and now[0] != 304]
        as_user(d, MINE, "upload", "-e", exe, gmon)
        for t in asked:
            now = get(d, MINE, t)
            series.setdefault(t, []).append((before[t][1], now[1], before[t][2], now[2]))
    tap.point(not steady, "uploads of another user leave a user's ETags as they are", steady[:2])
    tap.point(all(b and c for s in series.values() for b, c, _, _ in s), "every question has an ETag",
              [t for t, s in series.items() if not s[0][0]])
    changed = [(t, b, c) for t, s in series.items() for b, c, old, new in s if old != new and b == c]
    tap.point(not changed, "an upload of one's own gives new ones", changed)
    told = {}
    for t, s in series.items():
        steps = [[y - x for x, y in zip(numbers(b), numbers(c))] for b, c, _, _ in s]
        told[t] = [step for step in zip(*steps) if step == (1, 4, 18)]
    tap.point(not any(told.values()), "no number in an ETag tells how much another user has uploaded",
              {t: x for t, x in told.items() if x})
    return build


def restored(tap, d, build, exe, gmon):
    """A tag of the state after the backup must not fit another state that a restore began."""
    copy, asked = os.path.join(d.folder, "copy.db"), targets(build)
    tap.point(d.ctl("backup", copy).returncode == 0, "a backup")
    for _ in range(3):
        d.ctl("upload", "-e", exe, gmon)
    tags = {t: d.get(t) for t in asked}
    for attempt in range(2):
        d.stop()
        done = run(PROFD, "--state-dir", d.state, "--restore", copy)
        d.start()
        again = {t: d.get(t, If_None_Match=tags[t][1]["etag"])[0] for t in asked}
        tap.point(done.returncode == 0 and set(again.values()) == {200}, "after a restore no old ETag fits",
                  (done.stderr, again))
        for _ in range(3):  # other uploads, as many
            d.ctl("upload", "-e", exe, "--label", f"a=b{attempt}", gmon, gmon)
        kept = [t for t in asked if d.get(t, If_None_Match=tags[t][1]["etag"])[0] == 304]
        tap.point(not kept, "nor after as many other uploads", kept)
        tags = {t: d.get(t) for t in asked}


def copied(tap, d, build, exe, gmon):
    """Likewise if an operator copies the file, in its place or as a new one. The same file keeps its ETags."""
    copy, asked, path = os.path.join(d.folder, "by-hand.db"), targets(build), os.path.join(d.state, "profd.db")
    d.ctl("backup", copy)
    for _ in range(3):
        d.ctl("upload", "-e", exe, gmon)
    tags = {t: d.get(t) for t in asked}
    d.stop()
    d.start()
    kept = [d.get(t, If_None_Match=tags[t][1]["etag"])[0] for t in asked]
    tap.point(set(kept) == {304}, "after a restart every ETag fits", kept)
    for how, attempt in (("in its place", 0), ("in its place", 1), ("as a new file", 2)):
        d.stop()
        if how == "as a new file":
            os.unlink(path)
        shutil.copy(copy, path)
        d.start()
        for _ in range(3):
            d.ctl("upload", "-e", exe, "--label", f"a=c{attempt}", gmon)
        fits = [t for t in asked if d.get(t, If_None_Match=tags[t][1]["etag"])[0] == 304]
        tap.point(not fits, f"after a copy by hand ({how}) and as many other uploads no old ETag fits", fits)
        tags = {t: d.get(t) for t in asked}


def occupy(folder, left):
    """A foreign file takes all but so many bytes."""
    fs = os.statvfs(folder)
    with open(os.path.join(folder, "foreign"), "wb") as f:
        os.posix_fallocate(f.fileno(), 0, fs.f_bavail * fs.f_frsize - left)


def on_a_full_disk(tap, exe, gmon):
    """A copy by hand is begun while the disk has no space for another salt. There is space later, and as many other
    uploads come."""
    with Daemon(start=False) as d:
        os.makedirs(d.state, 0o700)
        run("mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", d.state)
        d.start()
        d.ctl("upload", "-e", exe, gmon)
        build = d.json("builds", "--json")["rows"][0]["build_id"]
        copy, asked, kept = os.path.join(d.folder, "copy.db"), targets(build), os.path.join(d.folder, "kept")
        done = d.ctl("backup", copy)
        tap.point(done.returncode == 0, "a backup on a small disk", done.stderr)
        for _ in range(3):
            d.ctl("upload", "-e", exe, gmon)
        tags = {t: d.get(t)[1]["etag"] for t in asked}
        d.stop()
        shutil.copytree(d.state, kept, ignore=shutil.ignore_patterns("reserve"))
        wrong, unsalted, started = [], 0, 0
        for left in range(0, 80 << 10, 4 << 10):
            for name in os.listdir(d.state):
                os.unlink(os.path.join(d.state, name))
            shutil.copytree(kept, d.state, dirs_exist_ok=True)
            shutil.copy(copy, os.path.join(d.state, "profd.db"))  # in its place: the inode stays
            occupy(d.state, left)
            before = len(d.logged())
            try:
                d.start()
            except RuntimeError:  # too little even for that
                continue
            started += 1
            unsalted += "ETags" in d.logged()[before:]
            wrong += [(left, "at once", t) for t in asked if d.get(t, If_None_Match=tags[t])[0] == 304]
            os.unlink(os.path.join(d.state, "foreign"))
            until(lambda: d.ctl("upload", "-e", exe, "--label", f"a=f{left}", gmon).returncode == 0)
            for _ in range(2):
                d.ctl("upload", "-e", exe, "--label", f"a=f{left}", gmon)
            wrong += [(left, "after uploads", t) for t in asked if d.get(t, If_None_Match=tags[t])[0] == 304]
            then = {t: d.get(t)[1]["etag"] for t in asked}
            d.stop()
            d.start()
            wrong += [(left, "after a restart", t) for t in asked if d.get(t, If_None_Match=tags[t])[0] == 304]
            d.stop()
            shutil.copy(copy, os.path.join(d.state, "profd.db"))
            d.start()
            for _ in range(3):
                d.ctl("upload", "-e", exe, "--label", f"a=g{left}", gmon)
            wrong += [(left, "after another copy", t) for t in asked if d.get(t, If_None_Match=then[t])[0] == 304]
            d.stop()
        tap.point(started and not wrong, f"no old ETag fits in {started} starts on a disk that is almost full", wrong)
        tap.point(unsalted, f"{unsalted} of these had no space for a salt, and the log says so", d.logged()[-500:])


def main():
    with Tap() as tap:
        mounts = private_mounts()
        if os.getuid() != 0 or not shutil.which("setpriv"):
            tap.skip("ETags of two users", "needs root and setpriv")
            return
        with Daemon() as d:
            exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
            gmon = example(exe, os.path.join(d.folder, "one.gmon"))
            shutil.copy(PROFCTL, os.path.join(d.folder, "profctl"))  # the checkout may be unreadable to others
            run("chmod", "-R", "a+rX", os.path.dirname(exe), gmon)
            os.chmod(d.http, 0o666)
            build = two_users(tap, d, exe, gmon)
            restored(tap, d, build, exe, gmon)
            copied(tap, d, build, exe, gmon)
            if mounts:
                on_a_full_disk(tap, exe, gmon)
            else:
                tap.skip("ETags on a full disk", "private mounts are not allowed here")


main()
