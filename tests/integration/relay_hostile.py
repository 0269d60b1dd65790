#!/usr/bin/python3
"""profd-relay against centres and proxies that do not keep the protocol: it says what was wrong, nothing that they say
forges a line of the log, profd's ledger stays true, and afterwards a good centre gets everything."""
import contextlib
import json
import socket
import threading

import https_bed
from harness import Tap, until
from relay_https import played
from relaying import equation

FORGED = "away\x1b[2J\n2026 error: forged"


def centres():
    """(what, twist, sentence)"""
    def forging(answer, _):
        return dict(answer, uploads=[dict(u, outcome="refused", detail=FORGED) for u in answer["uploads"]])

    def large(answer, _):
        return json.dumps(dict(answer, more="x" * (8 << 20))).encode()

    def twice(answer, _):
        return dict(answer, uploads=answer["uploads"] + answer["uploads"][:1])

    def unknown(answer, _):
        return dict(answer, uploads=[dict(u, outcome="lost") for u in answer["uploads"]])

    def negative(answer, _):
        return dict(answer, uploads=[dict(u, number=-1) for u in answer["uploads"]])

    def nested(answer, _):
        return b"[" * 100000

    return (("answers with 8 MiB", large, "bytes"), ("acknowledges one upload twice", twice, "the answer is not that"),
            ("states an outcome that there is not", unknown, "outcome"),
            ("states a number below 0", negative, "number"),
            ("nests a hundred thousand lists", nested, "the answer is not that"),
            ("sends control characters", forging, "forged"))


def clean(*texts):
    return all("\x1b" not in text and "\n2026" not in text for text in texts)


def hostile_centres(tap):
    for what, twist, sentence in centres():
        with played() as (centre, _, host):
            host.upload(2)
            centre.twist = lambda a, b: twist(a, b) if a["uploads"] else a
            (status, said), relay, text = host.once(), host.ledger(), host.d.ctl("status").stdout
            tap.point(status != -9 and sentence in said and equation(relay) and clean(said, text),
                      f"a centre that {what}: {said.strip()[-110:]}", (status, said, relay, text))
            if sentence != "forged":
                centre.twist = lambda a, b: a
                tap.point(not relay["acknowledged"]["uploads"] and host.once()[0] == 0 and until(host.has_sent_all)
                          and centre.counted() == (host.calls, host.sent), "afterwards everything arrives once",
                          (relay, centre.counted()))


def answer_connect(listener, answer):
    with listener.accept()[0] as s, contextlib.suppress(OSError):
        while not s.recv(65536).endswith(b"\r\n\r\n"):
            pass
        s.sendall(answer)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass


def hostile_proxies(tap):
    answers = (("never ends its head", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 400000),
               ("redirects", b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n"),
               ("forges lines of the log", b"HTTP/1.1 407 no\x1b[2J\n2026 error: forged\r\n\r\n"),
               ("speaks SSH", b"SSH-2.0-x\r\n\r\n"), ("says yes and closes", b"HTTP/1.1 200 OK\r\n\r\n"),
               ("says nothing", b""), ("says a NUL", b"\0\r\n\r\n"))
    with played() as (centre, _, host), socket.create_server(("127.0.0.1", 0)) as listener:
        host.upload(2)
        host.write_config(**{"relay-proxy": f"http://127.0.0.1:{listener.getsockname()[1]}"})
        for what, answer in answers:
            threading.Thread(target=answer_connect, args=(listener, answer), daemon=True).start()
            (status, said), relay, text = host.once(), host.ledger(), host.d.ctl("status").stdout
            tap.point(status not in (0, -9) and said.strip() and equation(relay) and relay["error"]
                      and not relay["acknowledged"]["uploads"] and clean(said, text),
                      f"a proxy that {what}: {said.strip()[-90:]}", (status, said, text))
        host.write_config(**{"relay-proxy": None})
        tap.point(host.once()[0] == 0 and centre.counted() == (host.calls, host.sent), "without it everything arrives",
                  centre.counted())


def main():
    with Tap() as tap:
        if why := https_bed.why_not():
            tap.skip("hostile centres and proxies", why)
            return
        hostile_centres(tap)
        hostile_proxies(tap)


if __name__ == "__main__":
    main()
