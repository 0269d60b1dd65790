"""Who sees what: the kernel's peer uid decides. Root and the read group see everything, anybody else what they sent."""
import os
import shutil

from harness import PROFCTL, Daemon, Tap, programs, run
from example_gmon import example

NOBODY, READER_GID, OTHER = 65534, 60123, 60124


def as_user(d, uid, gid, *arguments):
    env = dict(d.env, XDG_STATE_HOME="/nonexistent", HOME="/nonexistent", PROFD_SPOOL="/nonexistent/spool")
    return run("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", os.path.join(d.folder, "profctl"), *arguments,
               env=env, cwd=d.folder)


def main():
    with Tap() as tap:
        if os.getuid() != 0 or not shutil.which("setpriv"):
            tap.skip("rights of other users", "needs root and setpriv")
            return
        with Daemon("--read-group", str(READER_GID)) as d:
            d.ctl_path = PROFCTL
            exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
            gmon = example(exe, os.path.join(d.folder, "one.gmon"))
            shutil.copy(PROFCTL, os.path.join(d.folder, "profctl")) # the checkout may be unreadable to others
            run("chmod", "-R", "a+rX", os.path.dirname(exe), gmon)
            tap.point(d.ctl("upload", "-e", exe, gmon).returncode == 0, "root uploads")
            empty = as_user(d, NOBODY, NOBODY, "builds", "--json")
            tap.point(empty.returncode == 0 and '"rows":[]' in empty.stdout.replace(" ", ""), "nobody sees no build of root's", empty.stdout + empty.stderr)
            hidden = as_user(d, NOBODY, NOBODY, "report", exe)
            tap.point(hidden.returncode == 66, "nor its report", hidden.stderr)
            up = as_user(d, NOBODY, NOBODY, "upload", "-e", exe, gmon)
            tap.point(up.returncode == 0, "nobody uploads", up.stderr)
            own = as_user(d, NOBODY, NOBODY, "report", exe, "--json")
            tap.point('"seconds":1.93' in own.stdout.replace(" ", ""), "nobody's report is nobody's upload", own.stdout[:300] + own.stderr)
            everything = d.json("report", exe, "--json")
            tap.point(abs(everything["totals"]["seconds"] - 3.86) < 1e-9 and everything["provenance"]["uids"] == [0, NOBODY],
                      "root's report sums all uids and lists them", everything["provenance"])
            narrowed = d.json("report", exe, "--uid", str(NOBODY), "--json")
            tap.point(abs(narrowed["totals"]["seconds"] - 1.93) < 1e-9, "--uid narrows", narrowed["totals"])
            reader = as_user(d, OTHER, READER_GID, "report", exe, "--json")
            tap.point('"seconds":3.86' in reader.stdout.replace(" ", ""), "a member of the read group sees everything", reader.stdout[:300] + reader.stderr)
            mode = os.stat(d.http).st_mode & 0o777
            tap.point(mode == 0o660 and os.stat(d.http).st_gid == READER_GID, "the HTTP socket is 0660 and the read group's", oct(mode))
            tap.point(os.stat(d.socket).st_mode & 0o777 == 0o666, "the upload socket is 0666")
            modes = {f: oct(os.stat(os.path.join(d.state, f)).st_mode & 0o777) for f in os.listdir(d.state)}
            tap.point(all(m == "0o600" for m in modes.values()) and os.stat(d.state).st_mode & 0o077 == 0 or os.stat(d.state).st_mode & 0o027 == 0,
                      "state is for the daemon alone", modes)


main()
