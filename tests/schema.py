#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tests/schema.py SCHEMA FILE: whether a JSON file is as share/schemas says; where it is not, says where, with status 1.
# Knows the keywords that these schemas use, and refuses others: one that nobody looks at would allow everything.
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "title", "type", "properties", "required", "additionalProperties", "items", "minItems", "minimum", "enum", "anyOf"}


def has_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, schema, place):
    for keyword in schema.keys() - KNOWN:
        raise SystemExit(f"{place}: the schema has '{keyword}', which this check does not know")
    if "anyOf" in schema:
        wrong = [list(check(value, one, place)) for one in schema["anyOf"]]
        if all(wrong):
            yield wrong[0][0]
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(has_type(value, name) for name in names):
            yield f"{place}: {value!r} is no {' or '.join(names)}"
            return
    if "minimum" in schema and has_type(value, "number") and value < schema["minimum"]:
        yield f"{place}: {value!r} is below {schema['minimum']}"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{place}: has {len(value)} items"
        for i, item in enumerate(value):
            yield from check(item, schema.get("items", {}), f"{place}[{i}]")
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place}: has no {name}"
        more = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in schema.get("properties", {}):
                yield from check(item, schema["properties"][name], f"{place}.{name}")
            elif more is False:
                yield f"{place}: {name} is not described"
            elif more is not True:
                yield from check(item, more, f"{place}.{name}")


def refuse(name):
    raise ValueError(f"{name} is no JSON")


with open(sys.argv[1]) as file:
    schema = json.load(file)
faults = []
with open(sys.argv[2]) as file:
    text = file.read()
    for document in text.splitlines() if sys.argv[2].endswith(".jsonl") else [text]:
        faults += check(json.loads(document, parse_constant=refuse), schema, "$")
for fault in faults[:20]:
    print(fault)
sys.exit(1 if faults else 0)
