"""Who sees what: the kernel's peer uid decides. Root and the read group see everything, anybody else what they sent."""
import os
import shutil
import tempfile

from harness import PROFCTL, PROFD, Daemon, Tap, programs, run
from example_gmon import example

NOBODY, READER_GID, OTHER, ADMIN_GID, SERVICE = 65534, 60123, 60124, 60125, 60126


def as_user(d, uid, gid, *arguments, groups=None):
    env = dict(d.env, XDG_STATE_HOME="/nonexistent", HOME="/nonexistent", PROFD_SPOOL="/nonexistent/spool")
    return run("setpriv", f"--reuid={uid}", f"--regid={gid}", f"--groups={groups}" if groups else "--clear-groups",
               os.path.join(d.folder, "profctl"), *arguments,
               env=env, cwd=d.folder)


def operators(tap, d, exe):
    """Who may verify, back up and delete."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        who = (("nobody", NOBODY, NOBODY, None, False), ("a member of the read group", OTHER, READER_GID, None, False),
               ("a member of the admin group", OTHER, ADMIN_GID, None, True),
               ("one whose second group that is", OTHER, OTHER, ADMIN_GID, True))
        for name, uid, gid, groups, may in who:
            for verb in (["verify"], ["backup", os.path.join(folder, f"{uid}-{gid}-{groups}")]):
                done = as_user(d, uid, gid, *verb, groups=groups)
                tap.point(done.returncode == (0 if may else 77)
                          and (may or f'user {uid} may not use the command "{verb[0]}"' in done.stderr),
                          f"{name} {'may' if may else 'may not'} {verb[0]}", (done.returncode, done.stderr))
        copy = os.stat(os.path.join(folder, f"{OTHER}-{ADMIN_GID}-None"))
        tap.point((copy.st_uid, copy.st_mode & 0o777) == (OTHER, 0o600) and len(os.listdir(folder)) == 2,
                  "the copy belongs to who asked, the others left nothing", os.listdir(folder))
    hidden = as_user(d, NOBODY, NOBODY, "status", "--json")
    tap.point('"store":null' in hidden.stdout, "nobody is told no totals", hidden.stdout)
    # nobody sees an upload of his own in this build; with --yes the daemon is what refuses
    refused = as_user(d, NOBODY, NOBODY, "delete", exe, "--yes")
    tap.point(refused.returncode == 77 and "may not use the command \"delete\"" in refused.stderr,
              "nobody may not even delete what he sent", refused.stderr)
    before = d.json("report", exe, "--json")["totals"]["seconds"]
    tap.point(before > 3.8, "nothing was deleted")
    done = as_user(d, OTHER, OTHER, "delete", exe, "--yes", groups=ADMIN_GID)
    tap.point(done.returncode == 0 and " 2 uploads" in done.stdout and d.ctl("report", exe).returncode == 66,
              "an admin deletes everybody's", done.stdout + done.stderr)


def own_daemon(tap):
    """A daemon of a user's own obeys that user."""
    with Daemon(start=False, wrapper=["setpriv", f"--reuid={SERVICE}", f"--regid={SERVICE}", "--clear-groups"]) as d:
        for program in (PROFD, PROFCTL):
            shutil.copy(program, d.folder) # the checkout may be unreadable to others
        os.chmod(d.folder, 0o777)
        d.command = lambda: [*d.wrapper, os.path.join(d.folder, "profd"), "--state-dir", d.state, "--socket", d.socket,
                             "--http-socket", "none"]
        d.start()
        tap.point(as_user(d, SERVICE, SERVICE, "verify").returncode == 0, "the daemon's own user may verify")
        copy = os.path.join(d.folder, "copy.db")
        tap.point(as_user(d, SERVICE, SERVICE, "backup", copy).returncode == 0, "and back up")
        d.stop()
        done = run(os.path.join(d.folder, "profd"), "--state-dir", d.state, "--restore", copy)
        owners = {f: os.stat(os.path.join(d.state, f)).st_uid for f in os.listdir(d.state)}
        tap.point(done.returncode == 0 and set(owners.values()) == {SERVICE},
                  "what root restores belongs to the directory's owner", (done.stderr, owners))
        d.start()
        tap.point(as_user(d, SERVICE, SERVICE, "verify").returncode == 0, "who starts on it")


def main():
    with Tap() as tap:
        if os.getuid() != 0 or not shutil.which("setpriv"):
            tap.skip("rights of other users", "needs root and setpriv")
            return
        with Daemon("--read-group", str(READER_GID), "--admin-group", str(ADMIN_GID)) as d:
            d.ctl_path = PROFCTL
            exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
            gmon = example(exe, os.path.join(d.folder, "one.gmon"))
            shutil.copy(PROFCTL, os.path.join(d.folder, "profctl")) # the checkout may be unreadable to others
            run("chmod", "-R", "a+rX", os.path.dirname(exe), gmon)
            tap.point(d.ctl("upload", "-e", exe, gmon).returncode == 0, "root uploads")
            empty = as_user(d, NOBODY, NOBODY, "builds", "--json")
            tap.point(empty.returncode == 0 and '"rows":[]' in empty.stdout.replace(" ", ""),
                      "nobody sees no build of root's", empty.stdout + empty.stderr)
            hidden = as_user(d, NOBODY, NOBODY, "report", exe)
            tap.point(hidden.returncode == 66, "nor its report", hidden.stderr)
            up = as_user(d, NOBODY, NOBODY, "upload", "-e", exe, gmon)
            tap.point(up.returncode == 0, "nobody uploads", up.stderr)
            own = as_user(d, NOBODY, NOBODY, "report", exe, "--json")
            tap.point('"seconds":1.93' in own.stdout.replace(" ", ""), "nobody's report is nobody's upload",
                      own.stdout[:300] + own.stderr)
            everything = d.json("report", exe, "--json")
            tap.point(abs(everything["totals"]["seconds"] - 3.86) < 1e-9
                      and everything["provenance"]["uids"] == [0, NOBODY],
                      "root's report sums all uids and lists them", everything["provenance"])
            narrowed = d.json("report", exe, "--uid", str(NOBODY), "--json")
            tap.point(abs(narrowed["totals"]["seconds"] - 1.93) < 1e-9, "--uid narrows", narrowed["totals"])
            reader = as_user(d, OTHER, READER_GID, "report", exe, "--json")
            tap.point('"seconds":3.86' in reader.stdout.replace(" ", ""), "a member of the read group sees everything",
                      reader.stdout[:300] + reader.stderr)
            mode = os.stat(d.http).st_mode & 0o777
            tap.point(mode == 0o660 and os.stat(d.http).st_gid == READER_GID,
                      "the HTTP socket is 0660 and the read group's", oct(mode))
            tap.point(os.stat(d.socket).st_mode & 0o777 == 0o666, "the upload socket is 0666")
            modes = {f: oct(os.stat(os.path.join(d.state, f)).st_mode & 0o777) for f in os.listdir(d.state)}
            tap.point(all(m == "0o600" for m in modes.values()) and os.stat(d.state).st_mode & 0o077 == 0
                      or os.stat(d.state).st_mode & 0o027 == 0,
                      "state is for the daemon alone", modes)
            operators(tap, d, exe)
        own_daemon(tap)


main()
