"""make bench: one profile of 20,000 functions in the dashboard, in speedscope and in the web interface of pprof, side
by side in a headless Chromium; medians of ROUNDS. All three are served on loopback."""
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stack_tree  # noqa: E402
from harness import NODE_MODULES, ROOT, Daemon, free_port, until  # noqa: E402

ROUNDS, CHROMIUM = os.environ.get("ROUNDS", "5"), shutil.which(os.environ.get("CHROMIUM", "chromium"))
FUNCTIONS, NODES = 20000, 60000
SPEEDSCOPE, GO = os.path.join(NODE_MODULES, "speedscope", "dist", "release"), "/usr/lib/go-1.19/bin/go"
ASKED = {"first paint": 300, "content": 600, "interaction": 50}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve_speedscope(folder, profile):
    """Its built files with the profile beside them: the server."""
    shutil.copytree(SPEEDSCOPE, folder)
    shutil.copy(profile, os.path.join(folder, "profile.json"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def answers(url):
    try:
        return urllib.request.urlopen(url, timeout=300).status == 200
    except OSError:
        return False


def serve_pprof(d, profile):
    """go tool pprof -http: the process and its address."""
    url = f"http://127.0.0.1:{free_port()}/ui/"
    process = subprocess.Popen([GO, "tool", "pprof", f"-http={url[7:-4]}", "-no_browser", profile],
                               env=dict(d.env, HOME=d.folder, PPROF_TMPDIR=d.folder, GOFLAGS="-mod=mod"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: answers(url + "top"))
    return process, url


def measure(d, base):
    path, build, begin = stack_tree.executable(d.folder, FUNCTIONS)
    assert d.ctl("symbols", path).returncode == 0
    stack_tree.send(d.socket, path, build, begin, FUNCTIONS, NODES)
    for form, name in (("speedscope", "profile.json"), ("pprof", "profile.pb")):
        assert d.ctl("report", build, "-f", form, "-o", os.path.join(d.folder, name), timeout=300).returncode == 0
    functions = json.loads(d.ctl("report", build, "--json", "--limit", "1").stdout)["totals"]["functions"]
    server = serve_speedscope(os.path.join(d.folder, "speedscope"), os.path.join(d.folder, "profile.json"))
    pprof, url = serve_pprof(d, os.path.join(d.folder, "profile.pb"))
    try:
        done = subprocess.run(["node", os.path.join(ROOT, "tests/browser/bench_peers.mjs"),
                               os.path.dirname(NODE_MODULES), ROUNDS, base,
                               f"http://127.0.0.1:{server.server_port}/index.html", url],
                              env=dict(d.env, CHROMIUM=CHROMIUM, HOME=d.folder), capture_output=True, text=True,
                              timeout=1700)
    finally:
        pprof.terminate()
        pprof.wait(60)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    return functions, json.loads(done.stdout)


def main():
    playwright = os.path.join(NODE_MODULES, "playwright-core")
    needed = {"chromium": CHROMIUM, "node": shutil.which("node"), "playwright-core": os.path.isdir(playwright),
              "speedscope": os.path.isdir(SPEEDSCOPE), "golang-1.19-go": os.path.exists(GO)}
    missing = [what for what, found in needed.items() if not found]
    if missing:
        print(f"# no {', '.join(missing)} (sh tests/deps.sh check): no figures of the dashboard beside its peers")
        return
    port = free_port()
    with Daemon("--http", f"127.0.0.1:{port}", "--http-open") as d:
        functions, said = measure(d, f"http://127.0.0.1:{port}/")
    for what, by in said.items():
        wanted = next(ms for word, ms in ASKED.items() if what.startswith(word))
        cells = "  ".join(f"{who} {ms:,.0f} ms" for who, ms in by.items())
        print(f"{f'{functions:,} functions, {what}':<72} {cells}  asked ≤ {wanted:,}", flush=True)


main()
