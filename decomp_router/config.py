"""Settings of the service: flags override the environment (DECOMP_ROUTER_*), which overrides a TOML file."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import httpx
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from decomp_router.plan import LENGTH_CLASSES


class SettingsError(ValueError):
    """What is wrong with the settings, in one sentence."""


class Settings(BaseSettings):
    """All that can be set; see the help of `decomp-router serve` for what each is for."""

    model_config = SettingsConfigDict(env_prefix="DECOMP_ROUTER_", extra="forbid")

    upstream: str | None = None
    engine: Path | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8088, ge=0, le=65535)
    fanout: Literal["off", "auto"] = "off"
    max_width: int = Field(default=4, ge=1, le=64)
    min_length: int = Field(default=2, ge=0, lt=LENGTH_CLASSES)
    connect_timeout_s: float = Field(default=10.0, gt=0)
    read_timeout_s: float = Field(default=600.0, gt=0)

    @field_validator("upstream")
    @classmethod
    def _http_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            url = httpx.URL(value)
        except httpx.InvalidURL as error:
            raise ValueError(f"{value!r} is not an address ({error})") from error
        sound = url.scheme in ("http", "https") and url.host and (url.port is None or 0 < url.port < 65536)
        if not sound or any(blank in value for blank in " \t\n\0"):
            raise ValueError(f"{value!r} is not an address like http://127.0.0.1:8080")
        return value.rstrip("/")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load(file: Path | None, flags: dict[str, Any]) -> Settings:
    """Settings from all sources; raises SettingsError."""
    if file is not None and not os.path.isfile(file):  # noqa: PTH113 - Path.is_file raises on over-long names
        raise SettingsError(f"there is no settings file {file}")

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    try:
        return FromFile(**flags)
    except ValidationError as error:
        raise SettingsError(_sentence(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    return f"setting {name}: {first['msg'].removeprefix('Value error, ')}"
