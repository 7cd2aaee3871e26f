"""The published schemas as validators; each is checked once, and not before every document."""

import json
from functools import cache
from pathlib import Path

import jsonschema
from referencing import Registry, Resource

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


@cache
def published(name: str) -> jsonschema.Draft202012Validator:
    """That of `name`, such as result-2."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    folder = schema["$id"].rpartition("/")[0]  # as a reference to another file is resolved
    every = {f"{folder}/{file.name}": json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
    known = Registry().with_resources((name, Resource.from_contents(each)) for name, each in every.items())
    return jsonschema.Draft202012Validator(schema, registry=known)
