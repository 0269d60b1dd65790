#!/bin/bash
# The figures of the README: bench.sh BUILD-FOLDER.
set -euo pipefail
cd "$(dirname "$0")/../.."
PROFD_BUILD=$1 /usr/bin/python3 tests/bench/bench.py
