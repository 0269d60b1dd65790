"""profctl over https, through the real nginx in front of the Unix socket: what it reads is what it reads at the socket;
who the server is, is proved; every failure is one sentence."""
import json
import os
import socket
import threading

import harness
from harness import Daemon, Tap, free_port, programs, run
from https_bed import Nginx, certificate, proxied, why_not

MORE = """server {{
    listen 127.0.0.2:{port} ssl;
    ssl_certificate {folder}/server.crt; ssl_certificate_key {folder}/server.key;
    location / {{ return 200; }}
}}
server {{
    listen 127.0.0.1:{expired} ssl;
    ssl_certificate {folder}/expired.crt; ssl_certificate_key {folder}/expired.key;
    location / {{ return 200; }}
}}
server {{
    listen 127.0.0.1:{moved} ssl;
    ssl_certificate {folder}/server.crt; ssl_certificate_key {folder}/server.key;
    location / {{ return 302 https://other.invalid/; }}
}}
"""


class Servers(Nginx):
    """The shipped server, and on further ports what a client must refuse."""

    def __init__(self, d):
        super().__init__(d)
        self.expired, self.moved = free_port(), free_port()
        ended = certificate(self.folder, "expired", days=-1)[0]
        with open(self.ca, "a") as f:  # else a client sees an unknown signer before the date
            f.write(open(ended).read())
        self.more = MORE.format(folder=self.folder, port=self.port, expired=self.expired, moved=self.moved)


def same(tap, d, ask, exe):
    """Every verb that asks."""
    for verb in (("builds",), ("builds", "--json"), ("labels",), ("report", exe, "--json"), ("report", exe),
                 ("export", exe, "-o", "-"),
                 ("groups", exe, "--by", "service"), ("status", "--json"), ("ps",)):
        there, here = ask(*verb, binary=True), d.ctl(*verb, binary=True)
        fine = there.returncode == here.returncode == 0 and there.stderr == b""
        if verb == ("report", exe, "--json"):  # over HTTP a report has a limit of rows by default
            fine = fine and json.loads(there.stdout)["functions"] == json.loads(here.stdout)["functions"]
        elif verb[0] == "status":  # it counts requests
            fine = fine and json.loads(there.stdout)["uploads"] == json.loads(here.stdout)["uploads"]
        else:
            fine = fine and there.stdout == here.stdout
        tap.point(fine, f"{' '.join(v.replace(exe, 'EXE') for v in verb)} is the same over https", (there, here))


def environment(tap, d, nginx, token):
    env = dict(d.env, PROFD_SOCKET=nginx.at, PROFD_TOKEN_FILE=token)
    done = d.ctl("builds", "--cacert", nginx.ca, env=env)
    tap.point(done.returncode == 0 and "calc" in done.stdout, "PROFD_SOCKET and PROFD_TOKEN_FILE", done)


def refused(tap, name, done, status, *words):
    tap.point(done.returncode == status and done.stdout == "" and len(done.stderr.splitlines()) == 1
              and all(w in done.stderr for w in words), name, done)


def untrusted(tap, d, nginx, token, ask):
    at = nginx.at
    refused(tap, "a CA that is not trusted", d.ctl("builds", "--server", at, "--token-file", token), 77,
            f"certificate of {at} is not trusted", "--cacert")
    refused(tap, "a certificate for another name", ask("builds", server=f"https://127.0.0.2:{nginx.port}"), 77,
            "another name", "127.0.0.2")
    refused(tap, "a certificate that ended", ask("builds", server=f"https://localhost:{nginx.expired}"), 77,
            "not trusted", "expired")
    refused(tap, "no file of certificates", d.ctl("builds", "--server", at, "--cacert", "/nonexistent"), 66,
            "--cacert", "/nonexistent")
    refused(tap, "there is no way to go without a check", d.ctl("builds", "--server", at, "--insecure"), 64,
            "--insecure")
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as s:  # the token is not sent to a server without TLS
        def answer():
            c = s.accept()[0]
            seen.append(c.recv(65536))
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            c.close()
        t = threading.Thread(target=answer)
        t.start()
        done = ask("builds", server=f"https://127.0.0.1:{s.getsockname()[1]}")
        t.join()
    refused(tap, "a server without TLS", done, 69, "cannot ask https://127.0.0.1")
    tap.point(b"profd_" not in seen[0], "and it does not get the token", seen)


def rights(tap, d, nginx, ask):
    at = nginx.at
    wrong = os.path.join(d.folder, "wrong")
    with open(os.open(wrong, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write("profd_" + "0" * 64)
    refused(tap, "an unknown token", ask("builds", token=wrong), 77, "is unknown")
    refused(tap, "no token", d.ctl("builds", "--server", at, "--cacert", nginx.ca), 77, "has no token")
    other = d.token_file("other", "--read", "--tenant", "other")
    done = ask("status", "--json", token=other)
    tap.point(done.returncode == 0 and json.loads(done.stdout)["store"] is None,
              "a token of one tenant gets no totals", done)
    done = ask("builds", "--json", token=other)
    tap.point(json.loads(done.stdout)["rows"] == [], "a token of another tenant sees no build", done)
    os.chmod(wrong, 0o604)
    refused(tap, "a token that every user may read", ask("builds", token=wrong), 78, "every user may read", "chmod")
    refused(tap, "a token that is not there", ask("builds", token="/nonexistent"), 66, "/nonexistent")
    with open(wrong, "w") as f:
        f.write("a b\x1b")
    os.chmod(wrong, 0o600)
    refused(tap, "a token with control characters", ask("builds", token=wrong), 78, "not printable ASCII")


def symbols(tap, d, nginx, exe, ask):
    """An operator sends symbols through the proxy, as from where programs are built."""
    operator = d.token_file("operator", "--admin")
    only = os.path.join(d.folder, "only")
    run("objcopy", "--only-keep-debug", exe, only + ".debug")
    run("objcopy", "--strip-all", "--remove-section=.dynsym", f"--add-gnu-debuglink={only}.debug", exe, only)
    for name, path in (("an executable", exe), ("an executable with a debug file", only)):
        done = ask("symbols", path, token=operator)
        tap.point(done.returncode == 0 and "stored" in done.stdout, f"symbols of {name} are stored", done)
    done = ask("symbols", "--json", exe, token=operator)
    tap.point(done.returncode == 0 and json.loads(done.stdout)["names"], "symbols --json", done)
    refused(tap, "symbols by a token without the right", ask("symbols", exe), 77, "does not have")
    refused(tap, "symbols of no ELF file", ask("symbols", operator, token=operator), 65, operator)
    os.unlink(only + ".debug")
    refused(tap, "symbols of a stripped executable", ask("symbols", only, token=operator), 65, "no function names")
    done = d.ctl("symbols", exe, "--server", "http://127.0.0.1:1")
    tap.point(done.returncode == 69 and len(done.stderr.splitlines()) == 1, "no server at a loopback port", done)


def others(tap, d, nginx, exe, ask):
    refused(tap, "a redirection is not followed", ask("builds", server=f"https://localhost:{nginx.moved}"), 76,
            "redirected", "other.invalid")
    refused(tap, "a host that there is not", ask("builds", server="https://nosuch.invalid"), 69, "nosuch.invalid")
    refused(tap, "a port where nothing listens", ask("builds", server=f"https://localhost:{free_port()}"), 69,
            "cannot ask")
    for url in ("https://", "https://a b", "https://u@localhost", "https://localhost/x", "https://localhost:0",
                "https://localhost:99999", "https://[::1", "https://localhost?x", "ftp://localhost"):
        refused(tap, f"{url} is no server", ask("builds", server=url), 64, "https://HOST")
    gmon = harness.profile(d.folder, exe, ["3"], 9)
    for verb in (("delete", "--yes", "calc"), ("backup", os.path.join(d.folder, "b")), ("verify",),
                 ("token", "list"), ("reload",), ("pause", "1")):
        done = ask(*verb)
        tap.point(done.returncode == 64 and len(done.stderr.splitlines()) == 1 and "queries only" in done.stderr,
                  f"{verb[0]} goes to a Unix socket", done)
    done = ask("upload", "-e", exe, gmon)
    tap.point(done.returncode == 64 and "queries only" in done.stderr, "so does upload", done)
    d.stop()
    refused(tap, "a server whose daemon is stopped", ask("builds"), 69, "502", "does not answer")
    d.start()


def main():
    with Tap() as tap:
        if why_not():
            tap.skip("https", why_not())
            return
        with Daemon(*proxied()) as d:
            built = programs(os.path.join(d.folder, "programs"))
            exe = os.path.join(built, "calc")
            done = d.ctl("upload", "-l", "service=calc", "-e", exe, harness.profile(d.folder, exe, ["3"], 1))
            assert done.returncode == 0, done.stderr
            with Servers(d) as nginx:
                token = d.token_file("all")

                def ask(*verb, server=nginx.at, token=token, **options):
                    return d.ctl(*verb, "--server", server, "--cacert", nginx.ca, "--token-file", token, **options)
                same(tap, d, ask, exe)
                environment(tap, d, nginx, token)
                untrusted(tap, d, nginx, token, ask)
                rights(tap, d, nginx, ask)
                symbols(tap, d, nginx, exe, ask)
                others(tap, d, nginx, exe, ask)


main()
