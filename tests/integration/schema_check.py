#!/usr/bin/env python3
# not a test
"""schema_check.py REPORT.json… : does each answer follow schema/report.schema.json? "-" is the standard input.
Exit status: 0 all do; 1 one does not (the rule and the place are printed); 2 a file cannot be read or is not JSON."""
import json
import os
import sys

# The scripts beside this one are no modules of the validator's.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

from jsonschema import Draft202012Validator  # noqa: E402

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema", "report.schema.json")


def no_constant(word):
    raise ValueError(f"{word} is not JSON")


def read(path):
    stream = sys.stdin.buffer if path == "-" else open(path, "rb")
    with stream:
        return json.loads(stream.read().decode("utf-8"), parse_constant=no_constant)


def links(report):
    """What a schema cannot say: rows that name a shown entry agree with it."""
    shown = {f["index"]: f["name"] for f in report.get("functions", [])}
    for entry in report.get("functions", []) + report.get("cycles", []):
        for rows in (v for v in entry.values() if isinstance(v, list)):
            for row in (r for r in rows if isinstance(r, dict)):
                name = shown.get(row["index"])
                if name is not None and name != row["name"]:
                    yield f"index {row['index']} is {name!r} and {row['name']!r}"
    lengths = {k: len(v) for k, v in report.get("columns", {}).items()}
    if len(set(lengths.values())) > 1:
        yield f"columns are not equally long: {lengths}"


def main(paths):
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    validator = Draft202012Validator(read(SCHEMA))
    status = 0
    for path in paths:
        try:
            report = read(path)
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        faults = [f"{'/'.join(map(str, e.absolute_path)) or '(top)'}: {e.message}"
                  for e in validator.iter_errors(report)]
        faults = faults or list(links(report))
        for fault in faults[:10]:
            print(f"{path}: {fault[:500]}", file=sys.stderr)
            status = 1
    return status


sys.exit(main(sys.argv[1:]))
