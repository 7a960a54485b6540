"""From the command line to what the engine and the server are told."""

import argparse
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pascal_engine.engine import EngineOptions, RequestDefaults
from pascal_engine.flags.parser import Parser, from_environment
from pascal_engine.flags.peer import REFUSED, refusals
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.server.options import ServerOptions
from pascal_engine.server.sampling_fields import SamplingFields


@dataclass(frozen=True)
class Settings:
    """What a command line says."""

    model: Path
    host: str
    port: int
    engine: EngineOptions
    server: ServerOptions


def parse(arguments: list[str], environment: Mapping[str, str], description: str, epilog: str) -> Settings:
    """Ends the process with code 2 and one sentence where a flag is wrong, unknown or not supported."""
    parser = Parser(description, epilog)
    for sentence in refusals(arguments):
        parser.error(sentence)
    try:
        arguments = [*from_environment(environment), *arguments]
    except argparse.ArgumentTypeError as error:
        parser.error(f"an environment variable LLAMA_ARG_*: {error}")
    given, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(_unknown(unknown[0], parser))
    return Settings(Path(given.model), given.host, given.port, _engine(given, parser), _server(given))


def _unknown(argument: str, parser: Parser) -> str:
    name = argument.partition("=")[0]
    close = difflib.get_close_matches(name, [*parser._option_string_actions, *REFUSED], n=1)
    hint = f"did you mean {close[0]}?" if close else "see pascal-engine --help for those that there are"
    return f"there is no flag {name}; {hint}" if name.startswith("-") else f"'{argument}' belongs to no flag; {hint}"


def _engine(given: argparse.Namespace, parser: Parser) -> EngineOptions:
    variables: dict[str, Any] = dict(given.chat_template_kwargs)
    if given.reasoning != "auto":
        variables["enable_thinking"] = given.reasoning == "on"
    defaults = RequestDefaults(
        _sampling(given, parser),
        None if given.predict < 0 else given.predict,
        given.reasoning_format,
        variables,
    )
    return EngineOptions(
        given.ctx_size,
        given.parallel,
        given.cache_type_k,
        given.cache_type_v,
        cache_bytes=given.cache_bytes,
        backend=given.backend,
        threads=max(given.threads, 0),
        alias=given.alias,
        chat_template=given.chat_template,
        defaults=defaults,
    )


def _sampling(given: argparse.Namespace, parser: Parser) -> SamplingParams:
    """The flags are held to the same ranges as the fields of requests."""
    fields = {name[6:]: value for name, value in vars(given).items() if name[:6] == "field_" and value is not None}
    try:
        checked = SamplingFields.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        parser.error(f"the default of {first['loc'][0]} is wrong: {first['msg'].removeprefix('Value error, ')}")
    return checked.over(SamplingParams())


def _server(given: argparse.Namespace) -> ServerOptions:
    return ServerOptions(
        prefix_hygiene=given.prefix_hygiene,
        pooling=given.pooling if given.embeddings else None,
        api_keys=(*given.api_key, *given.api_key_file),
        cors_origins=given.cors_origins,
        slot_save_path=given.slot_save_path,
        slots=given.slots,
        metrics=given.metrics,
        props=given.props,
    )
