"""The published schemas as validators; each is checked once, and not before every document."""

import json
from functools import cache
from pathlib import Path

import jsonschema

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


@cache
def published(name: str) -> jsonschema.Draft202012Validator:
    """That of `name`, such as result-1."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
