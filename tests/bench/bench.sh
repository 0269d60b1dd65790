#!/bin/bash
# The figures of profd(8): bench.sh BUILD-FOLDER. What is measured goes to BUILD-FOLDER/bench.txt, too; at the end
# stands the list of that page (table.py). A benchmark that fails leaves its rows out, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PROFD_BUILD=$1
for name in bench bench_stacks bench_upload bench_graph bench_flame bench_diff bench_window bench_rollup bench_record \
    bench_http bench_otlp bench_browser bench_peers; do
    /usr/bin/python3 "tests/bench/$name.py" || echo "# $name.py failed"
done | tee "$1/bench.txt"
echo
/usr/bin/python3 tests/bench/table.py "$1/bench.txt"
! grep -q '^# .* failed$' "$1/bench.txt"
