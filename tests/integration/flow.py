"""Flow control: what others hold back, flood or exhaust never costs an upload, its exactness, or the daemon's
composure. The load generator of the bench is the flood: a client that backs off and sends the same upload again."""
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time

import harness
from harness import BUILD, LONG, NOBODY, Gmon, Other, Tap, bounds, programs, readable_copy, run, symbols, until
from siege import MB, Daemon
from wire import Wire, counts, field, header, sender_number, upload

LOAD = os.path.join(BUILD, "tests", "load")


def template(folder):
    """A small payload for the load generator."""
    path = os.path.join(folder, "payload")
    with open(path, "wb") as f:
        f.write(upload(sender_number(), 1))
    os.chmod(path, 0o644)
    return path


def values(text):
    return {k: float(v) for k, _, v in (line.partition(" ") for line in text.splitlines())}


def total(d):
    """Uploads that the daemon says it has accepted."""
    text = d.get("/metrics")[2].decode()
    return next(int(float(l.split()[1])) for l in text.splitlines() if l.startswith("profd_stored_uploads "))


def metric(d, name):
    return sum(float(l.rsplit(" ", 1)[1]) for l in d.get("/metrics")[2].decode().splitlines() if l.startswith(name))


def crowd(tap, d, folder):
    """2,000 connections of another user, of every kind that only takes room, while uploads go on."""
    before = d.descriptors_at_rest()
    started = total(d)

    wait, go_on = socket.socketpair()

    def attack(say):
        body = upload(sender_number(), 1)
        whole = header("UPLOAD", 1, len(body)) + body
        held = [Wire(d.socket) for _ in range(2000)]
        say("held")
        wait.recv(1)
        for n, w in enumerate(held):
            w.socket.setblocking(False)
            if n % 4 == 1: # half a frame
                w.raw(whole[:len(whole) // 2])
            elif n % 4 == 2: # never reads its answers
                mine = sender_number()
                w.raw(b"".join(header("UPLOAD", k + 1, len(b)) + b for k in range(10) for b in [upload(mine, k + 1)]))
            elif n % 4 == 3: # a byte now and then
                w.raw(b"\x40")
        say("begun")
        cut = 0
        for _ in range(1000): # all that stopped inside a frame must be cut off
            time.sleep(0.25)
            for n, w in enumerate(held):
                if n % 4 == 3 and w.socket.fileno() >= 0:
                    try:
                        w.raw(b"\0")
                    except OSError:
                        w.close()
                        cut += 1
            if cut == 500:
                break
        say(str(cut))

    other = Other(attack)
    said, held = [other.line()], metric(d, "profd_connections ")
    go_on.send(b"x")
    said.append(other.line())
    tap.point(said == ["held", "begun"], "2,000 connections: idle, half a frame, never reading, a byte at a time", said)
    got = run(LOAD, "-c", "20", "-w", "16", "-n", "5000", d.socket, template(folder))
    tap.point(got.returncode == 0 and values(got.stdout)["acks"] == 5000 and held >= 2000,
              "meanwhile 5,000 uploads of another user are all acknowledged", (held, got.stdout, got.stderr))
    tap.point(d.rss() < 128 * MB, f"2,000 such connections: {d.rss() >> 20} MB in the daemon", d.rss())
    cut = other.line()
    tap.point(cut == "500", "those who drip are cut off", cut)
    other.end()
    d.settled(tap, "2,000 connections", before, 128 * MB)
    tap.point(total(d) == started + 5000 + 500 * 10, "uploads whose answers nobody read are counted once, too",
              (started, total(d)))


def busy(tap, d, folder):
    """Two users flood until the queue is full; a third delivers files through it. Everything arrives once."""
    payload, started = template(folder), total(d)
    exe = os.path.join(programs(os.path.join(folder, "programs")), "sorter")
    main = symbols(exe)["main"][0]
    files = [Gmon(*bounds(exe)).tick(main + 8, n + 1).write(os.path.join(folder, f"{n}.gmon")) for n in range(40)]
    flood, load = [], readable_copy(LOAD, folder)
    for uid in (NOBODY, NOBODY - 1):
        command = [LOAD, "-c", "250", "-w", "256", "-n", "48000", d.socket, payload]
        if os.getuid() == 0:
            command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", load, *command[1:]]
        flood.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    until(lambda: metric(d, 'profd_queue_length{queue="writer"}') >= 20000 or flood[0].poll() is not None)
    first = d.ctl("upload", "--json", "-e", exe, *files)
    during = [p.poll() for p in flood]
    results = [p.communicate(timeout=LONG) for p in flood]
    told = [values(out) for out, _ in results]
    tap.point(all(p.returncode == 0 for p in flood) and all(t["acks"] == 48000 for t in told),
              "two floods of 48,000 uploads each, all in flight at once: all acknowledged", results)
    tap.point(any(t["busy"] > 0 for t in told), f"many were sent away first: BUSY {[int(t['busy']) for t in told]}, "
                                                f"repeated under the same ids", told)
    sent = json.loads(first.stdout)
    # the executable is sent once, and BUSY is said
    unnamed = sent["executables_refused"] == 1 and "the queue of uploads" in first.stderr
    tap.point(sent["stored"] + sent["spooled"] == 40 and sent["refused"] == 0 and (first.returncode == 0 or unnamed),
              "a third user's files go in between, or to his spool", (first.stdout, first.stderr, during))
    again = d.ctl("upload", "--json", "-e", exe, files[0])
    tap.point(again.returncode == 0 and not os.listdir(d.env["PROFD_SPOOL"]) if os.path.isdir(d.env["PROFD_SPOOL"])
              else again.returncode == 0,
              "what went to the spool goes with his next delivery", again.stderr)
    tap.point(total(d) == started + 96000 + 41, "every upload is counted exactly once",
              (started, total(d), first.stdout, again.stdout))
    report = d.json("report", exe, "--json")
    ticks = sum(range(1, 41)) + 1
    tap.point(abs(report["totals"]["seconds"] - ticks / 100) < 1e-9, f"and the files' {ticks} ticks as well",
              report["totals"])


def builds(tap, d):
    """10,000 builds an hour may be named for the first time by one user."""
    def attack(say):
        def names(first, n):
            body = field(1, sender_number().to_bytes(12, "little")) + field(2, 1)
            body += b"".join(field(6, field(1, f"{k:040x}") + field(2, f"/tmp/{k}")) for k in range(first, first + n))
            with Wire(d.socket) as w:
                w.send("UPLOAD", body + field(8, counts(1)) + field(11, "0123456789abcdef" * 2), 9)
                while (answer := w.take())[0] == "WANT_OBJECT":
                    pass
            return answer[0], answer[3].get(1), answer[3].get(2), answer[3].get(3), answer[3].get(4, b"").decode()
        base = 0xabc000000
        say(json.dumps([names(base + 1000 * n, 1000)[0] for n in range(10)]))
        say(json.dumps(names(base + 10000, 1000)))
        say(json.dumps(names(base, 1000)))

    other = Other(attack)
    tap.point(json.loads(other.line()) == ["ACK"] * 10, "a user names 10,000 builds")
    kind, status, retry, after, sentence = json.loads(other.line())
    tap.point((kind, status, retry) == ("NACK", 15, 1) and "10000 an hour" in sentence and 60000 < after <= 3600000,
              f"the next thousand has to wait: {sentence}", (kind, status, retry, after))
    tap.point(json.loads(other.line())[0] == "ACK", "what he named before goes on")
    other.end()
    with Wire(d.socket) as w:
        w.send("UPLOAD", upload(sender_number(), 1, build_id=os.urandom(20).hex()), 3)
        while (answer := w.take())[0] == "WANT_OBJECT":
            pass
    tap.point(answer[0] == "ACK" or os.getuid() != 0, "other users' new builds are taken", answer)


def exhausted(tap):
    """A daemon that may open 64 descriptors, and 300 connections to each of its sockets."""
    with Daemon(wrapper=("prlimit", "--nofile=64")) as d:
        before, held, told = d.descriptors_at_rest(), [], b""
        for path in (d.socket, d.http):
            for _ in range(300):
                s = socket.socket(socket.AF_UNIX)
                s.setblocking(False)
                try:
                    s.connect(path)
                    held.append(s)
                except BlockingIOError:
                    s.close() # the queue of the listening socket is full
        most = until(lambda: (n := d.descriptors()) >= 60 and n)
        tap.point(most, f"{most} of the 64 descriptors are in use", d.descriptors())

        def hear():
            nonlocal told
            for s in held:
                try:
                    told += s.recv(4096)
                except OSError:
                    pass
            return b"connections are" in told or b"descriptors" in told
        tap.point(until(hear), "those who are sent away are told why", told[-200:])
        lines, ticks, began = len(d.logged().splitlines()), cpu(d), time.monotonic()
        time.sleep(2) # of which upkeep sees some: not to get a descriptor is no failure of the disk
        spent, more = cpu(d) - ticks, len(d.logged().splitlines()) - lines
        seconds = time.monotonic() - began
        tap.point(spent < seconds * os.sysconf("SC_CLK_TCK") / 4, f"64 descriptors, {len(held)} connections: no "
                                                                  f"spinning, {spent} ticks", (spent, seconds))
        tap.point(more < 3 + seconds / 10, f"{more} lines of log in that time",
                  d.logged()[-600:])
        for s in held:
            s.close()
        d.settled(tap, "descriptors come back", before, 256 * MB)
        # dead connections may still stand before this one in the queue
        d.serves(tap, "descriptors come back", patience=LONG)
        tap.point(d.stop() == 0, "and the daemon ends with 0")


def killed(tap, folder):
    """The daemon is killed twice in the middle of a flood: what was not acknowledged comes again under its id and
    counts once."""
    with Daemon() as d:
        flood = subprocess.Popen([LOAD, "-c", "40", "-w", "32", "-n", "40000", d.socket, template(folder)],
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        for reached in (4000, 16000):
            until(lambda: total(d) >= reached or flood.poll() is not None)
            d.process.kill()
            d.process.wait()
            d.start()
        out, err = flood.communicate(timeout=LONG)
        told = values(out)
        tap.point(flood.returncode == 0 and told["acks"] == 40000 and told["reconnects"] >= 40,
                  "a daemon killed twice under 40,000 uploads: all acknowledged in the end", (out, err))
        tap.point(total(d) == 40000, f"and each counted once; {int(told.get('duplicates', 0))} had been stored before "
                                     f"their answer was lost", total(d))


def cpu(d):
    with open(f"/proc/{d.process.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Tap() as tap, tempfile.TemporaryDirectory(prefix="profd-flow-") as folder:
        os.chmod(folder, 0o755)
        with Daemon() as d:
            d.serves(tap, "in peace")
            # caches are filled before memory is compared
            run(LOAD, "-c", "50", "-w", "64", "-n", "20000", d.socket, template(folder))
            base = d.rss()
            crowd(tap, d, folder)
            busy(tap, d, folder)
            builds(tap, d)
            until(lambda: d.rss() <= base + 32 * MB) # what is free goes back to the system now and then
            tap.point(d.rss() < base + 32 * MB, f"memory: {base >> 20} MB before, {d.rss() >> 20} MB after",
                      (base, d.rss()))
            d.serves(tap, "after all this")
            tap.point(d.stop() == 0, "the daemon ends with 0", d.logged()[-800:])
        killed(tap, folder)
        exhausted(tap)


if __name__ == "__main__":
    main()
