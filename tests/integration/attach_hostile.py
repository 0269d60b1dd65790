"""Memories that lie, clients that flood: nothing of theirs is stored, nobody else is kept waiting, and what they took
is given back."""
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import threading
import time

from attach import admin, processes, sync, total, wait_for
from harness import BUILD, LONG, Daemon, Tap
from memory import ARCS, F_ADD_SEALS, GROW, PAGE, SEALS, SHRINK, SLOTS_AT, Attached, Counter, Memory
from wire import Wire

NOBODY, OTHER = 65534, 65533
GOOD = "/bin/good"


def descriptors(d):
    return len(os.listdir(f"/proc/{d.process.pid}/fd"))


def resident(d):
    """MB."""
    for line in open(f"/proc/{d.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024


def attempt(d, memory, **options):
    """The answer to one ATTACH."""
    a = Attached(d.socket, memory, **options)
    answer = a.answer
    a.close()
    return answer


def refusals(tap, d):
    """What is no memory to count in is refused at once, in words."""
    def seals(n):
        return lambda: Memory(seals=n)

    def broken(**header):
        def make():
            m = Memory()
            m.write_header(**header)
            return m
        return make

    cases = [("without seals", Memory(seals=0), None, b"seal SHRINK"),
             ("SHRINK only", Memory(seals=SHRINK), None, b"seal GROW"),
             ("without FUTURE_WRITE", Memory(seals=SHRINK | GROW | 1), None, b"seal FUTURE_WRITE"),
             ("too small", Memory(size=1 << 19), None, b"524288 bytes"),
             ("wrong magic", broken(magic=1)(), None, b""), ("another layout", broken(layout=2)(), None, b""),
             ("more used than there is", broken(used=1 << 30)(), None, b""),
             ("nobody", broken(instance=bytes(16))(), None, b"zeros")]
    read, write = os.pipe()
    fds = [("a pipe", read), ("a directory", os.open("/", os.O_RDONLY)), ("/dev/zero", os.open("/dev/zero", os.O_RDWR)),
           ("a file", os.open(__file__, os.O_RDONLY)), ("a socket", socket.socket(socket.AF_UNIX).detach()),
           ("a path", os.open("/", os.O_PATH)), ("/proc/kmsg's neighbour", os.open("/proc/self/status", os.O_RDONLY))]
    plain = Memory()
    wrong = []
    for name, memory, fd, words in cases + [(n, plain, fd, b"") for n, fd in fds]:
        answer = attempt(d, memory, fd=fd)
        if not answer or answer[0] != "NACK" or not answer[2].get(4) or words not in answer[2][4] or answer[2].get(2):
            wrong.append((name, answer))
    tap.point(not wrong, f"{len(cases) + len(fds)} kinds of things that are no memory to count in: refused, each in "
                         f"words", wrong)
    for _, fd in fds:
        os.close(fd)
    os.close(write)
    with open(os.memfd_create("by-hand", os.MFD_ALLOW_SEALING | os.MFD_HUGETLB), "rb") as huge:
        os.ftruncate(huge.fileno(), 1 << 21)  # of which nothing is mapped here: the machine may have none
        fcntl.fcntl(huge.fileno(), F_ADD_SEALS, SEALS)
        a = Attached(d.socket, plain, fd=huge.fileno())
        tap.point(a.answer[0] == "NACK" and b"tmpfs" in a.answer[2][4], "huge pages", a.answer)
        a.close()
    tap.point(attempt(d, plain, body=b"x")[0] == "NACK", "a body is refused")
    with Wire(d.socket) as w:
        w.send("ATTACH", b"", 4)
        tap.point(w.take()[0] == "NACK", "and no descriptor at all")
    a = Attached(d.socket, plain)
    a.send("ATTACH", b"", 7, fds=[plain.fd])
    while (second := a.take()) and second[1] != 7:
        pass
    tap.point(a.answer[0] == "ACK" and second and second[0] == "NACK" and b"second ATTACH" in second[3][4],
              "one process a connection", second)
    a.close()


def liars(tap, d):
    """They are accepted and lie later: nothing of theirs is stored."""
    def offsets(m):
        m.call()
        m.chunk(SLOTS_AT, ARCS, 1 << 20, 32, 32)

    def upside_down(m):
        struct.pack_into("<QQ", m.map, PAGE + 64 + 8, 0x3000, 0x1000)

    def another(m):
        m.write_header(instance=os.urandom(16))

    def too_many(m):
        m.chunk(SLOTS_AT, ARCS, 1, 1 << 31, 1 << 31)

    def labels(m):
        m.map[5 * PAGE + 64:5 * PAGE + 72] = b"nothing\0"
        m.chunk(5 * PAGE, 3, 1, 8)

    gone = []
    for lie in (offsets, upside_down, another, too_many, labels):
        m = Memory(name="/bin/liar")
        a = Attached(d.socket, m)
        time.sleep(0.01)
        lie(m)
        said = None
        while answer := a.take():
            said = answer
        gone.append((lie.__name__, a.answer[0], said and said[0], said and said[3].get(4)))
        a.close()
    tap.point(all(g[1] == "ACK" and g[2] == "NACK" and g[3] for g in gone),
              "five kinds of lies: the process is told, and not read any more", gone)
    m = Memory(name="/bin/liar")
    m.call(100)
    a = Attached(d.socket, m)
    wait_for(lambda: total(d, "/bin/liar") == 100)
    for n in (7, 2 ** 63, 2 ** 64 - 1, 50, 107): # down, absurd, absurd, down, up by 7
        m.slot(0, n)
        seen = [r for r in processes(d) if r["name"] == "/bin/liar"][0]["harvested"]
        wait_for(lambda: [r for r in processes(d) if r["name"] == "/bin/liar" and r["harvested"] > seen])
    tap.point(wait_for(lambda: total(d, "/bin/liar") == 107), "counts that go down, or beyond 2^63, are no news",
              total(d, "/bin/liar"))
    offsets(m)
    said = wait_for(lambda: "1 process may not be read any more" in d.logged())
    tap.point(said and "no daemon" not in d.logged(), "the log says that it is not read any more, with no daemon gone",
              d.logged()[-500:])
    a.close()


def strangers(tap, d):
    """An instance belongs to its user."""
    instance = os.urandom(16)
    m = Memory(instance=instance, name=GOOD)
    m.call(5)
    a = Attached(d.socket, m)
    b = attempt(d, Memory(instance=instance, name="/bin/other"))
    tap.point(a.answer[0] == "ACK" and b[0] == "NACK" and b"another memory" in b[2][4],
              "another memory under an attached instance is refused", b)
    if os.getuid() != 0:
        a.close()
        return tap.skip("another user's process of that name", "needs root")
    pid = os.fork()
    if pid == 0:
        os.setresgid(OTHER, OTHER, OTHER), os.setresuid(OTHER, OTHER, OTHER)
        n = Memory(instance=instance, name="/bin/stranger")
        n.call(70)
        c = Attached(d.socket, n)
        ok = c.answer[0] == "ACK"
        with Wire(d.socket) as w:
            rows = json.loads(w.query("/api/v1/processes")[1])["rows"]
            ok = ok and [r["uid"] for r in rows] == [OTHER]
        ok = (ok and admin(d, "pause", str(os.getppid()))[0] == "NACK"
              and admin(d, "pause", str(os.getpid()))[0] == "REPLY" and c.paused() == 1)
        os._exit(0 if ok else 1)
    status = os.waitpid(pid, 0)[1]
    tap.point(status == 0, "another user's process of that name is another process; he sees and pauses his own only",
              status)
    tap.point(wait_for(lambda: total(d, "/bin/stranger") == 70 and total(d, GOOD) == 5) and a.paused() == 0,
              "and neither counts as the other", (total(d, GOOD), total(d, "/bin/stranger")))
    a.close()
    return None


def thousand(tap, d):
    """1,000 memories of one user; then everything is as before."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    first = Attached(d.socket, Memory(name="/bin/first"))
    wait_for(lambda: len(processes(d)) == 1) # those before it, of this process, have ended
    before, memory = descriptors(d), resident(d)
    links, memories = [], []
    for i in range(1000):
        m = Memory(name="/bin/many", labels=[("n", str(i % 7))])
        m.call(i + 1)
        memories.append(m)
        links.append(Attached(d.socket, m))
    tap.point(all(a.answer[0] == "ACK" for a in links), "1,000 processes of one user are attached")
    tap.point(wait_for(lambda: total(d, "/bin/many") == 500500), "and harvested", total(d, "/bin/many"))
    rows, cursor = [], ""
    while True:
        page = json.loads(d.get(f"/api/v1/processes?limit=300{cursor}")[2])
        rows += page["rows"]
        if not page["next"]:
            break
        cursor = f"&cursor={page['next']}"
    tap.point(len(rows) == 1001 and len({r["instance"] for r in rows}) == 1001, "the list has pages", len(rows))
    for i, m in enumerate(memories):
        m.call(2, 3)
    tap.point(wait_for(lambda: total(d, "/bin/many") == 502500), "swept again: 2,000 calls more", total(d, "/bin/many"))
    for a, m in zip(links, memories):
        a.close(), m.close()
    first.close()
    # their process lives on: with its connections closed it is silent, until a program in its place attaches
    m = Memory(name="/bin/last")
    a = Attached(d.socket, m)
    tap.point(wait_for(lambda: len(processes(d)) == 1), "a later one of the same process: the earlier ones have ended",
              len(processes(d, "?limit=1000")))
    a.close()
    m.close()
    after = Memory(name="/bin/last")
    b = Attached(d.socket, after)
    back = wait_for(lambda: descriptors(d) <= before + 4)
    tap.point(back, "the descriptors are given back", (before, descriptors(d)))
    if not BUILD.endswith(("-asan", "-tsan")):  # a sanitizer keeps what was freed
        tap.point(resident(d) < memory + 100, "and the memory", (memory, resident(d)))
    b.close()


def flood(tap):
    """Attach and vanish, as fast as can be, while somebody counts."""
    with Daemon("--harvest-interval", "1s") as d:
        good = Counter(d.socket, 3)
        wait_for(lambda: processes(d))
        before, pids = descriptors(d), []
        for i in range(3):
            pid = os.fork()
            if pid == 0:
                if os.getuid() == 0:
                    os.setresuid(NOBODY, NOBODY, NOBODY)
                for k in range(300):
                    m = Memory(name="/bin/flood")
                    m.call()
                    try:
                        s = Counter.dial(d.socket, m)
                        s and s.close()
                    except OSError:
                        pass
                    m.close()
                os._exit(0)
            pids.append(pid)
        said = sync(d)
        for pid in pids:
            os.waitpid(pid, 0)
        made = good.stop()
        tap.point(said == "ACK" and sync(d) == "ACK" and wait_for(lambda: total(d, "/bin/counter") == made),
                  "900 attaches by processes that vanish: who counts meanwhile is not disturbed",
                  (said, made, total(d, "/bin/counter")))
        gone = wait_for(lambda: processes(d) == [] and descriptors(d) <= before)
        tap.point(gone, "nothing of them is left", (before, descriptors(d), len(processes(d))))
        tap.point(total(d, "/bin/flood") == 900, "what they had counted is there", total(d, "/bin/flood"))


def few_descriptors(tap):
    """Where descriptors are few, processes are refused in words and everybody else is served."""
    with Daemon(wrapper=["sh", "-c", 'ulimit -n 200; exec "$@"', "sh"]) as d:
        links, answer = [], None
        for i in range(120):
            a = Attached(d.socket, Memory(name="/bin/many"))
            links.append(a)
            if not a.answer or a.answer[0] == "NACK":
                answer = a.answer
                break
        tap.point(answer and b"attached processes; the limit is" in answer[2].get(4, b"") and answer[2].get(2) == 1,
                  f"of 200 descriptors {len(links) - 1} processes have theirs; the next is told to come again", answer)
        tap.point(d.get("/healthz")[0] == 200 and d.ctl("builds").returncode == 0, "others are served")
        for a in links:
            a.close()


def descriptors_at_once(tap):
    """As many ATTACHes as there are descriptors arrive before any of them can be acknowledged: until then each needs a
    fourth descriptor, the page. Those that cannot be served are told so; the daemon never runs out."""
    limits = b"descriptors are in use", b"attached", b"connections, the limit", b"connections are open"
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Daemon(wrapper=["sh", "-c", 'ulimit -n 4000; exec "$@"', "sh"]) as d:
        os.kill(d.process.pid, signal.SIGSTOP)
        memories = [Memory(name="/bin/many") for _ in range(1500)]
        links = [Attached(d.socket, m, wait=False, timeout=LONG) for m in memories]
        os.kill(d.process.pid, signal.SIGCONT)
        answers = [a.listen() for a in links]
        kinds = [a[0] if a else None for a in answers]
        other = [a for a in answers if not a or a[0] == "NACK" and not any(words in a[2][4] for words in limits)]
        tap.point(set(kinds) == {"ACK", "NACK"} and not other,
                  f"{len(links)} at once where there are 4,000 descriptors: {kinds.count('ACK')} are attached, "
                  f"the others are told why not", (set(kinds), other[:3]))
        tap.point("open files" not in d.logged(), "and the daemon did not run out of descriptors", d.logged())
        for a, m in zip(links, memories):
            a.close(), m.close()


def main():
    with Tap() as tap:
        with Daemon("--harvest-interval", "1s") as d:
            refusals(tap, d)
            liars(tap, d)
            strangers(tap, d)
            thousand(tap, d)
            tap.point(d.ctl("verify").returncode == 0, "what is stored adds up")
        flood(tap)
        few_descriptors(tap)
        descriptors_at_once(tap)


if __name__ == "__main__":
    main()
