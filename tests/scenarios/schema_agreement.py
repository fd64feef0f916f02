"""Asks python3-jsonschema whether the schemas agree with the reader.

usage: schema_agreement.py SCHEMA_FOLDER CORPUS

CORPUS has a document a line: kind, the reader's verdict (good or bad), JSON, separated by tabs.
Exit status: 0 they agree, 1 they do not, 2 python3-jsonschema is not installed.
"""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(2)


def validators(folder):
    made = {}
    for file in pathlib.Path(folder).glob("*.json"):
        schema = json.loads(file.read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        made[file.stem] = jsonschema.Draft7Validator(schema)
    return made


def main(folder, corpus):
    by_kind = validators(folder)
    disagreements = 0
    with open(corpus, encoding="utf-8") as lines:
        for line in lines:
            kind, verdict, text = line.rstrip("\n").split("\t", 2)
            if by_kind[kind].is_valid(json.loads(text)) == (verdict == "good"):
                continue
            disagreements += 1
            if disagreements <= 10:
                print(f"{kind}: the reader says {verdict}, the schema does not: {text[:2000]}")
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
