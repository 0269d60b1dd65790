"""profctl at a terminal: top, and completion scripts that shells accept and that know every verb and option."""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from harness import LONG, PROFCTL, Daemon, Gmon, Tap, bounds, programs, run, symbols


def verbs():
    text = run(PROFCTL, "help").stdout
    return re.findall(r"^  ([a-z][a-z-]*) ", text, re.M)


def options(verb):
    return re.findall(r"--([a-z-]+)", run(PROFCTL, verb, "--help").stdout.split("\noptions:")[-1].split("\n"
            "examples:")[0])


ZSH = r"""
zmodload zsh/zpty || exit 7
zpty z zsh -f
zpty -w z 'fpath=('$1' $fpath); autoload -Uz compinit; compinit -u -D
complete_and_note() { zle complete-word; print -r -- "$BUFFER" >> '$1'/noted; BUFFER= }
zle -N complete_and_note; bindkey "^I" complete_and_note; print -r -- ready >> '$1/noted
shift_to() { until (( $(wc -l < $1/noted 2>/dev/null || print 0) >= $2 )); do zpty -r -t z rest; sleep 0.05; done }
shift_to $1 1
n=1
for line in "${@[2,-1]}"; do
    zpty -w -n z "$line"$'\t'
    (( n++ ))
    shift_to $1 $n
done
zpty -d z
"""


def test_zsh(tap, d, build):
    """A real zsh on a terminal of its own, which is told what is typed and notes what became of it."""
    if not shutil.which("zsh"):
        return tap.skip("zsh: verbs, values, builds and labels", "no zsh here")
    folder = os.path.join(d.folder, "zsh")
    os.makedirs(folder)
    open(os.path.join(folder, "_profctl"), "w").write(run(PROFCTL, "completion", "zsh").stdout)
    open(os.path.join(folder, "drive"), "w").write(ZSH)
    typed = {"profctl rep": "profctl report", "profctl report --sort s": "profctl report --sort self",
             f"profctl report {build[:6]}": f"profctl report {build}",
             "profctl report -l serv": "profctl report -l service=web",
             "profctl upload --format call": "profctl upload --format callgrind"}
    try:
        done = run("zsh", "-f", os.path.join(folder, "drive"), folder, *typed, cwd=folder,
                   env=dict(d.env, HOME=folder, ZDOTDIR=folder, TERM="vt100",
                            PATH=f"{os.path.dirname(PROFCTL)}:/usr/bin:/bin"))
    except subprocess.TimeoutExpired as error:
        return tap.point(False, "zsh completes", error)
    if done.returncode == 7:
        return tap.skip("zsh: verbs, values, builds and labels", "no zpty in this zsh")
    got = [line.strip() for line in open(os.path.join(folder, "noted")).read().splitlines()[1:]]
    return tap.point(got == list(typed.values()), "zsh: verbs, values, builds and labels", (got, done.stderr))


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

    groups = [re.findall(r"^  ([a-z][a-z-]*) ", part, re.M) for part in run(PROFCTL, "help").stdout.split("\n\n")[2:-1]]
    described = re.findall(r"verbs=\(\n(.*?)\n +\); _describe -t (\w+) '", scripts["zsh"], re.S)
    tap.point(len(groups) == 6 and [re.findall(r"^ +'([a-z-]+):", rows, re.M) for rows, _ in described]
              == [[v for v in group if v in names] for group in groups], "zsh: verbs are in the groups of the help",
              (groups, described))
    order = re.search(r"COMP_CWORD == 1.*?-W '([^']*)'", scripts["bash"], re.S)[1].split()
    tap.point(order == sum(groups, []), "bash: and in their order", order)

    def bash(*words):
        quoted = " ".join(f"'{w}'" for w in words)
        done = run("bash", "-c", f"source {d.folder}/completion.bash; COMP_WORDS=({quoted}); "
                                 f"COMP_CWORD={len(words) - 1}; _profctl; "
                                 'printf "%s\\n" "${COMPREPLY[@]}"',
                                 env=dict(d.env, PATH=f"{os.path.dirname(PROFCTL)}:/usr/bin:/bin"))
        return done.stdout.split()

    tap.point(bash("profctl", "rep") == ["report"], "bash: rep becomes report", bash("profctl", "rep"))
    tap.point(bash("profctl", "report", "--sort", "s") == ["self"], "bash: --sort s becomes self")
    build = d.json("builds", "--json")["rows"][0]["build_id"]
    found = bash("profctl", "report", build[:5])
    tap.point(len(found) == 1 and build.startswith(found[0]), "bash: a build-id is completed by asking the daemon",
              found)
    tap.point(bash("profctl", "report", "--sort", "=", "s") == ["self"]
              and bash("profctl", "report", "--sort", "=") == ["index", "self", "total", "calls"],
              "bash: --sort=s, which arrives as three words", bash("profctl", "report", "--sort", "="))
    tap.point(bash("profctl", "report", "-l", "se") == ["service="]
              and bash("profctl", "report", "-l", "service", "=") == ["web"]
              and bash("profctl", "report", "--label", "service", "=", "w") == ["web"],
              "bash: labels that the daemon knows, and their values",
              (bash("profctl", "report", "-l", "se"), bash("profctl", "report", "-l", "service", "=")))
    if shutil.which("fish"):
        def fish(line):
            done = run("fish", "--no-config", "-c", f"source {d.folder}/completion.fish; complete -C {line!r}",
                       env=dict(d.env, HOME=d.folder, PATH=f"{os.path.dirname(PROFCTL)}:/usr/bin:/bin"))
            return [l.split("\t")[0] for l in done.stdout.splitlines()]
        tap.point(fish("profctl rep") == ["report"] and fish("profctl report --sort s") == ["self"],
                  "fish: verbs and values", fish("profctl report --sort s"))
        tap.point(build in fish("profctl report " + build[:5]) and "service=web" in fish("profctl report -l serv"),
                  "fish: builds and labels",
                  (fish("profctl report " + build[:5]), fish("profctl report -l serv")))
    else:
        tap.skip("fish: verbs, values, builds and labels", "no fish here")
    test_zsh(tap, d, build)
    silent = run(PROFCTL, "completion", "builds", "--socket", "/nowhere/s")
    tap.point(silent.returncode == 0 and silent.stdout + silent.stderr == "",
              "without a daemon nothing is offered, and nothing said", silent)
    bad = run(PROFCTL, "completion", "tcsh")
    tap.point(bad.returncode == 64 and "tcsh" in bad.stderr, "an unknown shell is named", bad)


def test_values(tap, d, exe):
    """What the scripts offer is what the verbs take: every value of every option that has a list."""
    script = run(PROFCTL, "completion", "bash").stdout
    offered = {(v, o): words.split() for v, o, words in re.findall(r"^ +(\w+):--([a-z-]+)(?:\|\S+)?\) "
            r"COMPREPLY=\(\$\(compgen -W '([^']+)'", script, re.M)}
    build = d.json("builds", "--json")["rows"][0]["build_id"]
    sentence = d.get(f"/api/v1/builds/{build}/report?format=nonsense")[2].decode()
    formats = set(re.findall(r"[a-z-]+", json.loads(sentence)["detail"].split("none of")[1]))
    tap.point("speedscope" in formats and set(offered["report", "format"]) == formats | {"svg"},
              "every format that the daemon names, the picture that profctl has drawn, and no other",
              (sentence, offered["report", "format"]))
    refusal = d.ctl("report", exe, "-f", "nonsense")
    tap.point(refusal.returncode == 64 and set(re.findall(r"[a-z-]+", refusal.stderr.split("one of ")[1].split(",")[0]))
              == set(offered["report", "format"]), "and profctl refuses another one with the same list", refusal)
    before = {"report": [exe], "top": [exe, "-n", "1"], "groups": [exe, "--by", "host"],
              "export": [exe, "-o", os.path.join(d.folder, "exported")],
              "builds": []}
    wrong = []
    for (verb, option), words in offered.items():
        for word in words if verb in before else []:
            base = [a for a in before[verb] if not (option == "step" and a in ("--by", "host"))]
            done = d.ctl(verb, *base, f"--{option}", word, binary=True)
            lacks = option == "format" and b" which these profiles do not have: " in done.stderr
            if (done.returncode == 64 and not lacks) or b"none of" in done.stderr or (done.returncode != 0
                    and option not in ("format", "scope", "since", "until")):
                wrong.append((verb, option, word, done.stderr[:200]))
    tap.point(len(offered) > 20 and not wrong, f"values of {len(offered)} options are taken by their verbs", wrong[:5])


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
    tap.point(once.returncode == 0 and re.search(r"\ba\b", once.stdout) and "\x1b" not in once.stdout,
              "top into a pipe looks once", once)
    two = d.ctl("top", exe, "-n", "2", "-i", "1", "--limit", "1")
    tap.point(two.returncode == 0 and two.stdout.count(two.stdout.splitlines()[0]) == 2, "-n 2 looks twice", two.stdout)
    past = d.ctl("top", exe, "-w", "10m", "--json")
    tap.point(past.returncode == 0 and '"schema":"profd-report-1"' in past.stdout, "--json, of the last ten minutes",
              past)
    for words, named in ((["-n", "0"], "0"), (["-i", "x"], "x"), (["--limit", "-3"], "-3"), (["-w", "soon"], "soon")):
        done = d.ctl("top", exe, *words)
        tap.point(done.returncode != 0 and named in done.stderr, f"top {' '.join(words)} is refused by name", done)
    text, status = at_terminal([PROFCTL, "top", exe, "-i", "1"], d.env, LONG, lambda out: out.count(b"\x1b[2J") >= 2)
    if text is None:
        tap.skip("top on a terminal", "no pseudo-terminal here")
        return
    tap.point(status == 0 and text.count("\x1b[2J") >= 2, "on a terminal it looks again until Ctrl-C, and ends with 0",
              (status, text[-500:]))


with Tap() as tap, Daemon() as d:
    exe = os.path.join(programs(os.path.join(d.folder, "programs")), "cycle")
    s, (low, high) = symbols(exe), bounds(exe)
    g = Gmon(low, high).tick(s["a"][0], 500).arc(s["main"][0] + 5, s["a"][0], 3).write(os.path.join(d.folder, "g"))
    assert d.ctl("upload", "-e", exe, "-l", "service=web", g).returncode == 0
    test_completion(tap, d)
    test_values(tap, d, exe)
    test_top(tap, d, exe)
