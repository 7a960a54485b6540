"""The OpenAPI document and the page of fields: both are made from the schemas, and both are current."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from starlette.routing import Route

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from pascal_engine.server.schemas import REFUSED, GenerationBody
from tests.engine.harness import Json

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def document(client: httpx.AsyncClient) -> Json:
    content: Json = (await client.get("/openapi.json")).json()
    return content


async def test_every_route_is_described(document: Json, served: Engine) -> None:
    table = [route for route in create_app(served).routes if isinstance(route, Route)]
    served_ones = {(route.path, m) for route in table for m in route.methods or () if m != "HEAD"}
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == served_ones - {("/openapi.json", "GET")}
    assert all(
        operation["summary"].endswith(".") for methods in document["paths"].values() for operation in methods.values()
    )


async def test_all_references_lead_somewhere_and_all_schemas_are_valid(document: Json) -> None:
    schemas = document["components"]["schemas"]
    assert references(document) <= {f"#/components/schemas/{name}" for name in schemas}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)


async def test_the_schema_of_a_body_says_what_the_route_takes(document: Json) -> None:
    body = document["paths"]["/completion"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**body, "components": document["components"]})
    for good in ({"prompt": "a"}, {"prompt": ["a", 5], "top_p": 0.5}, {"prompt": [[5], "a"], "stop": "x", "zzz": 1}):
        assert not list(validator.iter_errors(good))
    for bad in ({}, {"prompt": "a", "top_p": 2}, {"prompt": 5}):
        assert list(validator.iter_errors(bad))


def references(part: Any) -> set[str]:  # noqa: ANN401
    if isinstance(part, list):
        return {found for inner in part for found in references(inner)}
    if not isinstance(part, dict):
        return set()
    own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
    return own | {found for inner in part.values() for found in references(inner)}


def test_the_page_of_fields_is_current() -> None:
    spec = importlib.util.spec_from_file_location("fields", ROOT / "bench/fields.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/api-fields.md").read_text(encoding="utf-8") == module.page(), "run python bench/fields.py"


def test_shared_fields_are_described_and_neutral_values_are_json() -> None:
    assert all(field.description for field in GenerationBody.model_fields.values())
    assert all(json.dumps(value) for neutral in REFUSED.values() for value in neutral)
