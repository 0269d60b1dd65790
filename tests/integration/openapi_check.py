#!/usr/bin/env python3
# not a test
"""openapi_check.py PATH ANSWER.json…: does each follow what schema/openapi.json says that GET PATH answers with 200?
Exit status: 0 all do; 1 one does not (the rule and the place are printed)."""
import json
import os
import sys

# The scripts beside this one are no modules of the validator's.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

from jsonschema import Draft202012Validator  # noqa: E402

OPENAPI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema", "openapi.json")


def main():
    with open(OPENAPI, encoding="utf-8") as f:
        document = json.load(f)
    answer = document["paths"][sys.argv[1]]["get"]["responses"]["200"]["content"]["application/json"]
    schema = dict(answer["schema"], components=document["components"])
    validator, bad = Draft202012Validator(schema), []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            bad += [f"{path}: {e.message} at {list(e.absolute_path)}" for e in validator.iter_errors(json.load(f))]
    bad += [f"example: {e.message} at {list(e.absolute_path)}" for e in validator.iter_errors(answer["example"])]
    print("\n".join(bad[:20]))
    return 1 if bad else 0


sys.exit(main())
