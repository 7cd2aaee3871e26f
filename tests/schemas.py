"""The published schemas as validators; each is checked once, and not before every document."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry
from referencing.jsonschema import DRAFT202012

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


@cache
def published(name: str) -> jsonschema.Draft202012Validator:
    """That of `name`, such as result-1."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, registry=_others())


@cache
def _others() -> "Registry[Any]":
    """What a schema refers to by the name of its file: bundles of a GPU to those of an SM."""
    name = "bundle-2.schema.json"
    other = DRAFT202012.create_resource(json.loads((FOLDER / name).read_text()))
    known: Registry[Any] = Registry().with_resource(f"makespan.gpu-bundle/{name}", other)
    return known
