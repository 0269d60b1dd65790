#!/bin/bash
# The figures of the README: bench.sh BUILD-FOLDER.
set -euo pipefail
cd "$(dirname "$0")/../.."
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench.py
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench_upload.py
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench_graph.py
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench_window.py
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench_rollup.py
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench_http.py
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench_browser.py
