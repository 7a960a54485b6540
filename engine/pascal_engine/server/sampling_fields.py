"""The sampling fields that all generating routes share: names, defaults and meanings are llama-server's."""

from dataclasses import fields, replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, field_validator

from pascal_engine.engine import Engine
from pascal_engine.sampling.params import SamplingParams, chain_of
from pascal_engine.server.logit_bias import parse_logit_bias

RANDOM_SEED = 0xFFFFFFFF
"""What llama-server shows, and takes, for a seed that is to be random."""

MOST_TEXTS = 256
"""More would slow down everyone's tokens, and no one has use for them."""

Fraction = Annotated[float, Field(ge=0, le=1)]
Window = Annotated[int, Field(ge=-1, le=2**31 - 1)]


class SamplingFields(BaseModel):
    """A field that is not given takes the server's default."""

    temperature: Annotated[float, Field(ge=0, le=1e6)] | None = Field(
        None, description="How much chance there is in the choice of a token; 0 always takes the likeliest."
    )
    dynatemp_range: Annotated[float, Field(ge=0, le=1e6)] | None = Field(
        None, description="The temperature moves by up to this with the entropy of the choice; 0 is off."
    )
    dynatemp_exponent: Annotated[float, Field(ge=0, le=1e3)] | None = Field(
        None, description="How entropy maps to the temperature where `dynatemp_range` is on."
    )
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1)] | None = Field(
        None, description="Only the K likeliest tokens; 0 or -1 is off."
    )
    top_p: Fraction | None = Field(
        None, description="Only the likeliest tokens that together have this probability; 1 is off."
    )
    min_p: Fraction | None = Field(
        None, description="Only tokens with at least this share of the likeliest one's probability; 0 is off."
    )
    typical_p: Fraction | None = Field(
        None, description="Only the most typical tokens that together have this probability; 1 is off."
    )
    top_n_sigma: Annotated[float, Field(ge=-1e6, le=1e6)] | None = Field(
        None, description="Only tokens within so many standard deviations of the highest logit; below 0 is off."
    )
    xtc_probability: Fraction | None = Field(
        None, description="How often the likeliest tokens but one are left out; 0 is off."
    )
    xtc_threshold: Fraction | None = Field(
        None, description="The probability from which on `xtc_probability` leaves out tokens; above 0.5 is off."
    )
    min_keep: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="Filters leave at least so many tokens."
    )
    repeat_last_n: Window | None = Field(
        None, description="How many of the last tokens the three penalties look at; 0 is none, -1 all."
    )
    repeat_penalty: Annotated[float, Field(gt=0, le=1e6)] | None = Field(
        None, description="Logits of tokens that occurred are divided by this (multiplied where negative); 1 is off."
    )
    presence_penalty: Annotated[float, Field(ge=-1e6, le=1e6)] | None = Field(
        None, description="Taken off the logit of a token that occurred."
    )
    frequency_penalty: Annotated[float, Field(ge=-1e6, le=1e6)] | None = Field(
        None, description="Taken off the logit of a token for each time that it occurred."
    )
    dry_multiplier: Annotated[float, Field(ge=0, le=1e6)] | None = Field(
        None, description="How strongly tokens that would go on repeating a sequence are penalised; 0 is off."
    )
    dry_base: Annotated[float, Field(ge=1, le=1e6)] | None = Field(
        None, description="The penalty grows by this factor with each repeated token."
    )
    dry_allowed_length: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="Repeated sequences up to this length are free."
    )
    dry_penalty_last_n: Window | None = Field(
        None, description="How many of the last tokens are searched for repetitions; 0 is none, -1 all."
    )
    dry_sequence_breakers: Annotated[list[str], Field(min_length=1, max_length=MOST_TEXTS)] | None = Field(
        None, description="Texts across which no repetition is seen."
    )
    samplers: list[str] | str | None = Field(
        None,
        description="The chain of samplers in order: names (`penalties`, `dry`, `top_n_sigma`, `top_k`, `typ_p`,"
        " `top_p`, `min_p`, `xtc`, `temperature`), or one letter each (`edskypmxt`).",
    )
    seed: Annotated[int, Field(ge=-1, lt=2**63)] | None = Field(
        None, description="Equal seeds give equal answers; -1 is a random one."
    )
    logit_bias: list[Any] | dict[str, Any] | None = Field(
        None,
        description="Added to logits: a list of `[token id or text, bias]` or an object of such pairs; `false` as bias"
        " bans the token.",
    )
    ignore_eos: bool = Field(False, description="End-of-generation tokens are banned, so that the answer goes on.")

    @field_validator("samplers")
    @classmethod
    def _known_samplers(cls, given: list[str] | str | None) -> list[str] | None:
        return None if given is None else list(chain_of(given))

    def over(self, defaults: SamplingParams) -> SamplingParams:
        """`defaults` with what is given here, but for `logit_bias` and `ignore_eos`."""
        given = {name: value for name in _SIMPLE if (value := getattr(self, name)) is not None}
        for name in ("samplers", "dry_sequence_breakers"):
            if name in given:
                given[name] = tuple(given[name])
        if self.top_k is not None:
            given["top_k"] = max(self.top_k, 0)
        if self.seed is not None:
            given["seed"] = None if self.seed in (-1, RANDOM_SEED) else self.seed
        return replace(defaults, **given)

    def sampling(self, engine: Engine) -> SamplingParams:
        """What the request asks for, on top of the server's defaults. Raises a 400 for tokens that do not exist."""
        biases = () if self.logit_bias is None else parse_logit_bias(self.logit_bias, engine.tokenizer)
        return replace(self.over(engine.defaults.sampling), logit_bias=biases)


_PARAMS = {field.name for field in fields(SamplingParams)} - {"seed", "logit_bias"}
_SIMPLE = tuple(name for name in SamplingFields.model_fields if name in _PARAMS)
