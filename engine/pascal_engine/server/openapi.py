"""The OpenAPI document, made from the routes and the schemas of their bodies."""

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import models_json_schema

from pascal_engine import __version__
from pascal_engine.server.routes import Route

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "type"],
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "type": {"type": "string"},
            },
        }
    },
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    table = list(routes)
    bodies = {route.body for route in table if route.body is not None}
    names, definitions = models_json_schema(
        [(body, "validation") for body in sorted(bodies, key=lambda body: body.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    references = {body: reference for (body, _), reference in names.items()}
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        for path in route.paths:
            paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "pascal-engine", "version": __version__},
        "paths": paths,
        "components": {"schemas": {**definitions.get("$defs", {}), "Error": _ERROR}},
    }


def _operation(route: Route, path: str, references: dict[Any, Any]) -> dict[str, Any]:
    failed = {"description": "an error", "content": _json({"$ref": "#/components/schemas/Error"})}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "responses": {"200": {"description": "the answer"}, "default": failed},
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(references[route.body])}
    if "{id_slot}" in path:
        operation["parameters"] = [
            _parameter("id_slot", "path", {"type": "integer", "minimum": 0}),
            _parameter("action", "query", {"enum": ["save", "restore", "erase"]}),
        ]
    return operation


def _parameter(name: str, where: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": where, "required": True, "schema": schema}


def _json(schema: object) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
