"""profctl tier init: the tables in a current ClickHouse and in Debian's 18.16, made once, and each refusal in a
sentence with what to do; a request or reply that is lost or cut off leaves what the next init completes."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

from harness import LONG, PROFCTL, PROFD, ROOT, Daemon, Tap, free_port, run, until
from https_bed import certificate
from tier_bed import PASSWORD, Between, Chdb, Old, cut, drop, lose_reply

TABLES = ["layout", "manifest", "mark", "series", "sum", "tombstone"]
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html></html>\n"


def secret(folder, text, mode=0o600):
    path = os.path.join(folder, f"password{mode:o}{len(text)}")
    with open(path, "w") as f:
        f.write(text + "\n")
    os.chmod(path, mode)
    return path


# In the first line of each statement of an init, but not of a look at the settings. The daemon itself polls the
# manifest by statements with another limit.
OF_INIT = "max_execution_time=120&"


def init(url, *options, arguments=("tier", "init")):
    with Daemon("--tier", url, *options) as d:
        return d.ctl(*arguments)


def fine(done, *words):
    return done.returncode == 0 and done.stderr == "" and all(w in done.stdout for w in words)


def refused(tap, name, done, status, *words):
    tap.point(done.returncode == status and done.stdout == "" and len(done.stderr.splitlines()) == 1
              and all(w in done.stderr for w in words), name, done)


def tables(server, database):
    return server.query(f"SELECT name FROM system.tables WHERE database = '{database}' ORDER BY name").split()


def count(server, database):
    return sum(int(server.query(f"SELECT count() FROM {database}.{t}")) for t in TABLES[1:])


def made(tap, name, server):
    with Daemon("--tier", server.url()) as d:
        first, again = d.ctl("tier", "init"), d.ctl("tier", "init")
        shown = json.loads(d.ctl("tier", "init", "--json").stdout)["rows"]
    version = server.query("SELECT version()").strip()
    tap.point(fine(first, f"ClickHouse {version} at http://127.0.0.1:{server.http}: the tables in database profd were "
                   "made, and every statement of profd runs"), f"{name}: init makes the tables", first)
    tap.point(fine(again, "database profd were there") and shown == [
        {"server": f"http://127.0.0.1:{server.http}", "version": version, "database": "profd", "made": False}],
        f"{name}: init may be repeated", (again, shown))
    tap.point(tables(server, "profd") == TABLES and count(server, "profd") == 0
              and server.query("SELECT version, described FROM profd.layout") == "1\tone server\n",
              f"{name}: the tables are there once, and empty")


def interrupted(tap, name, server, makes):
    """Requests of an init are lost, or their replies are lost or cut off: the replies of the first `makes`, which make
    the database and the tables, of the last ones, which say so in the table `layout`, and some of the others."""
    bad = []
    with Between(server.http, OF_INIT) as gate:
        with Daemon("--tier", server.url("whole", port=gate.http)) as d:
            whole = d.ctl("tier", "init")
            requests = len(gate.seen)
            for damage in (drop, lose_reply, cut):
                for i in sorted({*range(3, requests, 12), *(
                        (*range(makes), requests - 2, requests - 1) if damage is lose_reply else ())}):
                    server.query("DROP DATABASE whole")
                    gate.seen, gate.damage = [], (
                        lambda s, r, a, i=i, damage=damage: damage(s, r, a) if len(gate.seen) == i + 1
                        else s.sendall(a()))
                    first = d.ctl("tier", "init")
                    gate.damage = None
                    second = d.ctl("tier", "init")
                    if first.returncode not in (69, 76) or len(first.stderr.splitlines()) != 1 or \
                            not fine(second) or tables(server, "whole") != TABLES or count(server, "whole"):
                        bad.append((damage.__name__, i, first, second))
    tap.point(fine(whole) and requests > makes + 2 and not bad,
              f"{name}: one of {requests} requests fails, and the next init completes it", bad)


def foreign(tap, name, server):
    server.query("CREATE DATABASE theirs")
    server.query("CREATE TABLE theirs.sum (x UInt8) ENGINE = MergeTree ORDER BY x")
    refused(tap, f"{name}: a database of others", init(server.url("theirs")), 65, '"theirs"', "1 tables",
            "name another database")
    tap.point(tables(server, "theirs") == ["sum"], f"{name}: it stays as it is")
    init(server.url("changed"))
    server.query("ALTER TABLE changed.sum DROP COLUMN spread")
    refused(tap, f"{name}: a statement that fails is named", init(server.url("changed")), 65,
            "INSERT INTO sum (centre, day", "spread", "(code ")
    server.query("INSERT INTO profd.layout (version, described, profd) VALUES (2, 'one server', '9')")
    refused(tap, f"{name}: tables of a newer profd", init(server.url()), 78, "version 2", "knows 1")
    server.query("CREATE DATABASE other")
    server.query("CREATE TABLE other.layout AS profd.layout")
    server.query("INSERT INTO other.layout (version, described, profd) VALUES (1, 'cluster=c', '9')")
    refused(tap, f"{name}: tables for another layout", init(server.url("other")), 65, "cluster=c", "one server")
    refused(tap, f"{name}: a cluster that it does not know", init(server.url("none", cluster="elsewhere")), 65,
            'no cluster "elsewhere"', "remote_servers")
    tap.point("none" not in server.query("SHOW DATABASES").split(), f"{name}: nothing was made for it")


def users(tap, name, server, folder):
    url = server.url("own", user="writer")
    refused(tap, f"{name}: no password", init(url), 77, "writer")
    refused(tap, f"{name}: a wrong password", init(url, "--tier-password-file", secret(folder, "wrong")), 77, "writer",
            f"http://127.0.0.1:{server.http}")
    done = init(url, "--tier-password-file", secret(folder, PASSWORD))
    tap.point(fine(done, "were made"), f"{name}: the password of the file", done)
    if isinstance(server, Old):
        refused(tap, f"{name}: a user who may only read", init(server.url("own", user="reader")), 77, "readonly")


def others(tap, server):
    """What answers in a server's place."""
    with Daemon() as d:
        refused(tap, "no tier", d.ctl("tier", "init"), 65, "the key tier of profd.conf(5)")
        refused(tap, "no status of no tier", d.ctl("tier", "status"), 1, "the key tier of profd.conf(5)")
    port = free_port()
    refused(tap, "no server", init(f"http://127.0.0.1:{port}/profd"), 69, f"http://127.0.0.1:{port}")
    with Between(server.http) as gate:
        gate.damage = lambda s, _, __: s.sendall(HTML)
        refused(tap, "a server that is not ClickHouse", init(server.url(port=gate.http)), 76, "is not ClickHouse")
    refused(tap, "another word", init(server.url(), arguments=("tier", "drop")), 64, '"drop"')


def cancelled(tap, server):
    """ClickHouse does not answer: init ends with its client, and with the daemon."""
    hold = threading.Event()
    with Between(server.http, OF_INIT) as gate:
        gate.damage = lambda *_: hold.wait()
        for name in ("its client is killed", "the daemon stops"):
            with Daemon("--tier", server.url(port=gate.http)) as d:
                asking = subprocess.Popen([PROFCTL, "tier", "init"], env=d.env, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True)
                waits = until(lambda: bool(gate.seen))
                gate.seen.clear()
                if name == "its client is killed":
                    asking.kill()
                    fine_end = until(lambda: "was cancelled" in d.logged())
                else:
                    fine_end = d.stop() == 0
                out, err = asking.communicate(timeout=LONG)
                tap.point(waits and fine_end and "was cancelled" in d.logged()
                          and (asking.returncode, out) in ((-9, ""), (75, "")), f"an init ends when {name}",
                          (err, d.logged()))
    hold.set()


def tls(tap, folder):
    pair, other = certificate(folder), certificate(folder, "other")
    with Chdb(pair) as server:
        url = server.url(host="localhost")
        done = init(url, "--tier-ca-file", pair[0])
        tap.point(url.startswith("https:") and fine(done, "https://localhost"), "over TLS", done)
        refused(tap, "an authority that is not trusted", init(url, "--tier-ca-file", other[0]), 77, "certificate")
        refused(tap, "a file without certificates", init(url, "--tier-ca-file", "/dev/null"), 66, "certificates")


def grants(tap):
    """The rights that profd(8) names are enough, and each of them is needed."""
    page = open(os.path.join(ROOT, "daemon", "profd.8")).read()
    named = re.search(r"^GRANT (.*) ON profd\.\* TO profd;$", page, re.M)[1].split(", ")
    everywhere = re.search(r"^GRANT (\w+) ON \*\.\* TO profd;", page, re.M)[1]
    drop_one = "ALTER TABLE profd.sum DROP PARTITION ('0123456789abcdef', 1)"
    spread = "CREATE TABLE profd.x AS profd.layout ENGINE = Distributed('fleet', 'profd', layout)"
    with Chdb() as server:
        server.query("CREATE DATABASE profd")

        def allow(rights, *more):
            server.stop()
            server.grants = [f"GRANT {', '.join(rights)} ON profd.*", *more]
            server.start()

        for left in ("CREATE TABLE", "SELECT", "INSERT"):
            allow([r for r in named if r != left])
            refused(tap, f"without the right {left} init fails", init(server.url()), 77, "Not enough privileges", left)
        allow(named)
        done = init(server.url())
        tap.point(fine(done), "with the rights of the manual it works", done)
        tap.point(said(server, drop_one) == "" and "Not enough privileges" in said(server, spread),
                  "they are enough to drop partitions, and not for a cluster",
                  (said(server, drop_one), said(server, spread)))
        allow([r for r in named if r != "ALTER DELETE"])
        tap.point("ALTER DELETE" in said(server, drop_one), "for partitions ALTER DELETE is needed",
                  said(server, drop_one))
        allow(named, f"GRANT {everywhere} ON *.*")
        tap.point("'fleet' not found" in said(server, spread), f"for a cluster {everywhere} is enough",
                  said(server, spread))


def system_tables(tap):
    """Packages of current releases let every user read only some tables of the database system, which the embedded
    library does not do: the manual names the others."""
    page = open(os.path.join(ROOT, "daemon", "profd.8")).read()
    asked = {t for path in glob.glob(os.path.join(ROOT, "daemon/tier/*.c"))
             for t in re.findall(r"system\.(\w+)", open(path).read())}
    named = set(re.findall(r"^GRANT SELECT ON system\.(\w+) TO profd;$", page, re.M))
    tap.point(asked - {"databases", "settings", "tables"} == named, "the manual has the rights to tables of system",
              (asked, named))


def said(server, statement):
    """What it says if it refuses."""
    try:
        server.query(statement)
    except RuntimeError as e:
        return str(e)
    return ""


def configuration(tap, folder):
    good = ("--tier", "https://ch.example/profd")
    for options, words in (
            (("--tier", "http://ch.example/profd"), ("loopback", "use https://")),
            (("--tier", "https://u:secret@h"), ("tier-password-file",)),
            ((*good, "--seal-after", "23h"), ("seal-after", "at least 1d")),
            ((*good, "--tier-name", "eu 1"), ('tier-name is "eu 1"',)),
            ((*good, "--tier-password-file", secret(folder, "x", 0o644)), ("0644", "set mode 0600")),
            ((*good, "--tier-password-file", secret(folder, "")), ("no password in",)),
            ((*good, "--tier-password-file", folder + "/none"), ("cannot read the password file",))):
        done = run(PROFD, "--state-dir", folder + "/db", "--socket", folder + "/s", "--http-socket", "none", *options)
        tap.point(done.returncode == 78 and all(w in done.stderr for w in words) and "secret" not in done.stderr,
                  f"configuration: {options[-2]} {re.sub('.*/', '', options[-1])}", done)


def main():
    folder = tempfile.mkdtemp(prefix="profd-test-")
    with Tap() as tap:
        configuration(tap, folder)
        system_tables(tap)
        for kind in (Chdb, Old):
            name = "current" if kind is Chdb else "18.16"
            if kind.why_not:
                tap.skip(f"{name} ClickHouse", kind.why_not)
                continue
            with kind() as server:
                made(tap, name, server)
                interrupted(tap, name, server, 12 if kind is Chdb else 4)
                users(tap, name, server, folder)
                foreign(tap, name, server)
                if kind is Chdb:
                    others(tap, server)
                    cancelled(tap, server)
                server.stop()
                server.start()
                tap.point(tables(server, "own") == TABLES, f"{name}: a killed server has them still")
        if not Chdb.why_not:
            tls(tap, folder)
            grants(tap)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
