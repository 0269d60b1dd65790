#!/usr/bin/python3
"""What relaying costs a host: the CPU time and the anonymous memory of its profd at so many uploads a second, with and
without profd-relay, in turn. overhead.py [seconds=T] [rate=N] [rounds=N]. Prints figures; what arrives is exact."""
import sys
import time

from bed import ARCS, Centre, Daemon, Host, Tap, calls, calls_of, until, why_not
from herd import cpu_of, status_of
from relaying import body
from wire import Wire, sender_number


def load(d, seconds, rate):
    """build → calls; one upload each 1/rate seconds, or as fast as answers come."""
    sent, sender, begin, sequence = {}, sender_number(), time.monotonic(), 0
    with Wire(d.socket) as w:
        while time.monotonic() < begin + seconds:
            build, sequence = ARCS[sequence % len(ARCS)], sequence + 1
            w.send("UPLOAD", body(sender, sequence, build, 1, 1 + sequence % 7))
            while w.take()[0] != "ACK":
                pass
            sent[build] = sent.get(build, 0) + 1 + sequence % 7
            time.sleep(max(0.0, begin + sequence / rate - time.monotonic()))
    return sent, sequence


def measure(d, w):
    cpu, begin = cpu_of(d.process.pid), time.monotonic()
    sent, count = load(d, w["seconds"], w["rate"])
    took = time.monotonic() - begin
    share = 100 * (cpu_of(d.process.pid) - cpu) / took
    return sent, {"cpu": share, "memory": status_of(d.process.pid, "RssAnon") / 1024, "rate": count / took}


def add(total, sent):
    for build, n in sent.items():
        total[build] = total.get(build, 0) + n


def compare(tap, w):
    with Daemon() as plain, Centre(interval="10s") as centre:
        h = Host(centre, "host", 0, builds=(), rate=0)
        try:
            h.relay.start()
            truth, without, with_relay = {}, [], []
            for _ in range(w["rounds"]):
                without.append(measure(plain, w)[1])
                sent, figures = measure(h.daemon, w)
                with_relay.append(figures)
                add(truth, sent)
            until(h.settled)
            a, b = ({k: sum(f[k] for f in x) / len(x) for k in x[0]} for x in (without, with_relay))
            tap.point(truth == calls(calls_of(centre)),
                      f"{b['rate']:.0f} uploads/s: profd uses {a['cpu']:.1f} % of a core without relaying, "
                      f"{b['cpu']:.1f} % with it: {b['cpu'] - a['cpu']:+.1f} %; RssAnon {a['memory']:.1f} MB and "
                      f"{b['memory']:.1f} MB: {b['memory'] - a['memory']:+.1f} MB", (truth, calls_of(centre)))
        finally:
            h.end()


def main():
    w = {"seconds": 2, "rate": 100, "rounds": 1}
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        w[name] = int(value)
    with Tap() as tap:
        if why_not():
            tap.skip("what relaying costs", why_not())
            return
        compare(tap, w)


if __name__ == "__main__":
    main()
