"""profctl at a terminal: top, and completion scripts that shells accept and that know every verb and option."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from harness import PROFCTL, Daemon, Gmon, Tap, bounds, programs, run, symbols


def verbs():
    text = run(PROFCTL, "help").stdout
    return re.findall(r"^  (\w+) ", text.split("verbs:")[1], re.M)


def options(verb):
    return re.findall(r"--([a-z-]+)", run(PROFCTL, verb, "--help").stdout.split("options:")[-1])


def test_completion(tap, d):
    names = [v for v in verbs() if v not in ("help", "version")]
    scripts = {s: run(PROFCTL, "completion", s).stdout for s in ("bash", "zsh", "fish")}
    for shell, script in scripts.items():
        path = os.path.join(d.folder, f"completion.{shell}")
        open(path, "w").write(script)
        if shutil.which(shell):
            done = run(shell, "-n", path)
            tap.point(done.returncode == 0 and done.stderr == "", f"{shell} reads its script", done.stderr)
        else:
            tap.skip(f"{shell} reads its script", f"no {shell} here")
        tap.point(all(re.search(rf"\b{v}\b", script) for v in names), f"{shell}: all {len(names)} verbs are in it")
        missing = [(v, o) for v in names if v != "gprof" for o in set(options(v)) if not re.search(rf"\b{o}\b", script)]
        tap.point(not missing, f"{shell}: and their options", missing)

    def bash(*words):
        quoted = " ".join(f"'{w}'" for w in words)
        done = run("bash", "-c", f"source {d.folder}/completion.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _profctl; "
                                 'printf "%s\\n" "${COMPREPLY[@]}"', env=dict(d.env, PATH=f"{os.path.dirname(PROFCTL)}:/usr/bin:/bin"))
        return done.stdout.split()

    tap.point(bash("profctl", "re") == ["report"], "bash: re becomes report", bash("profctl", "re"))
    tap.point(bash("profctl", "report", "--sort", "s") == ["self"], "bash: --sort s becomes self")
    build = d.json("builds", "--json")["rows"][0]["build_id"]
    found = bash("profctl", "report", build[:5])
    tap.point(len(found) == 1 and build.startswith(found[0]), "bash: a build-id is completed by asking the daemon", found)
    bad = run(PROFCTL, "completion", "tcsh")
    tap.point(bad.returncode == 64 and "tcsh" in bad.stderr, "an unknown shell is named", bad)


def at_terminal(command, env, seconds, stop=None):
    """Output and exit status of a command on a pseudo-terminal; SIGINT when stop is seen in the output."""
    try:
        leader, follower = pty.openpty()
    except OSError:
        return None, None
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=env, close_fds=True)
    os.close(follower)
    data, sent, end = b"", False, time.monotonic() + seconds
    while time.monotonic() < end:
        ready, _, _ = select.select([leader], [], [], 0.2)
        if ready:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            data += piece
        if stop and not sent and stop(data):
            process.send_signal(signal.SIGINT)
            sent = True
    if process.poll() is None:
        process.kill()
    os.close(leader)
    return data.decode(errors="replace"), process.wait()


def test_top(tap, d, exe):
    once = d.ctl("top", exe)
    tap.point(once.returncode == 0 and re.search(r"\ba\b", once.stdout) and "\x1b" not in once.stdout, "top into a pipe looks once", once)
    two = d.ctl("top", exe, "-n", "2", "-i", "1", "--limit", "1")
    tap.point(two.returncode == 0 and two.stdout.count(two.stdout.splitlines()[0]) == 2, "-n 2 looks twice", two.stdout)
    past = d.ctl("top", exe, "-w", "10m", "--json")
    tap.point(past.returncode == 0 and '"schema":"profd-report-1"' in past.stdout, "--json, of the last ten minutes", past)
    for words, named in ((["-n", "0"], "0"), (["-i", "x"], "x"), (["--limit", "-3"], "-3"), (["-w", "soon"], "soon")):
        done = d.ctl("top", exe, *words)
        tap.point(done.returncode != 0 and named in done.stderr, f"top {' '.join(words)} is refused by name", done)
    text, status = at_terminal([PROFCTL, "top", exe, "-i", "1"], d.env, 20, lambda out: out.count(b"\x1b[2J") >= 2)
    if text is None:
        tap.skip("top on a terminal", "no pseudo-terminal here")
        return
    tap.point(status == 0 and text.count("\x1b[2J") >= 2, "on a terminal it looks again until Ctrl-C, and ends with 0", (status, text[-500:]))


with Tap() as tap, Daemon() as d:
    exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
    s, (low, high) = symbols(exe), bounds(exe)
    g = Gmon(low, high).tick(s["a"][0], 500).arc(s["main"][0] + 5, s["a"][0], 3).write(os.path.join(d.folder, "g"))
    assert d.ctl("upload", "-e", exe, g).returncode == 0
    test_completion(tap, d)
    test_top(tap, d, exe)
