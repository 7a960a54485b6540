"""Bodies of llama-server's own routes."""

from dataclasses import replace
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server.errors import not_supported
from pascal_engine.server.schemas import Body, GenerationBody

Mixed: TypeAlias = list[str | int]


MOST_ANSWERS = 128


class PromptObject(BaseModel):
    """llama-server's form for prompts with pictures or sound, which are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt_string: str | Mixed

    @model_validator(mode="before")
    @classmethod
    def _text_only(cls, data: object) -> object:
        if isinstance(data, dict) and "multimodal_data" in data:
            raise not_supported("'multimodal_data'")
        return data


Prompt: TypeAlias = str | Mixed | PromptObject


class NativeCompletionBody(GenerationBody):
    """POST /completion."""

    prompt: str | list[str | int | Mixed | PromptObject] | PromptObject = Field(
        description="Text, token ids, or a list that mixes both; a list without ids holds several prompts, which gives"
        " a list of answers."
    )
    n_cmpl: Annotated[int, Field(ge=1, le=MOST_ANSWERS)] | None = Field(
        None, description="Answers to each prompt; where there is a seed, the next answer has the next seed."
    )
    n: Annotated[int, Field(ge=1, le=MOST_ANSWERS)] = Field(1, description="The same as `n_cmpl`, which goes first.")
    response_fields: list[str] = Field(
        default_factory=list,
        description="Only these fields of the answer; `generation_settings/n_predict` takes out an inner one.",
    )

    n_probs: Annotated[int, Field(ge=0, le=1000)] = Field(
        0, description="With each token, the probabilities of the N likeliest ones; 0 is off."
    )
    post_sampling_probs: bool = Field(
        False, description="`n_probs` tells the probabilities that the chain of samplers left, not those of the logits."
    )
    return_progress: bool = Field(False, description="A stream tells how far the prompt is, in `prompt_progress`.")
    timings_per_token: bool = Field(False, description="Each chunk of a stream holds `timings`.")

    @property
    def several(self) -> bool:
        """Whether there are several prompts."""
        return isinstance(self.prompt, list) and not any(isinstance(part, int) for part in self.prompt)

    def prompts(self) -> list[str | Mixed]:
        """Each prompt by itself. Raises `ValueError` where a list of ids holds a prompt."""
        if not isinstance(self.prompt, list):
            return [_plain(self.prompt)]
        if self.several:
            return [_plain(part) for part in self.prompt if not isinstance(part, int)]
        return [[part for part in self.prompt if isinstance(part, str | int)]]

    def requests(self, engine: Engine, prompts: list[list[int]]) -> list[GenerationRequest]:
        """A request for each answer to each prompt."""
        first = self.request(engine, prompts[0])
        seed = first.sampling.seed
        seeds = [None if seed is None else seed + answer for answer in range(self.n_cmpl or self.n)]
        each = [replace(first, sampling=replace(first.sampling, seed=seed)) for seed in seeds]
        return [replace(request, tokens=tuple(tokens)) for tokens in prompts for request in each]

    def request(self, engine: Engine, tokens: list[int]) -> GenerationRequest:
        request = super().request(engine, tokens)
        sampling = replace(request.sampling, n_probs=self.n_probs, post_sampling_probs=self.post_sampling_probs)
        return replace(request, sampling=sampling, report_progress=self.return_progress and self.stream)

    @model_validator(mode="after")
    def _one_level(self) -> "NativeCompletionBody":
        if isinstance(self.prompt, list) and not self.several:
            if any(not isinstance(part, str | int) for part in self.prompt):
                raise ValueError("'prompt' mixes token ids and prompts; give either one prompt or a list of prompts")
        elif self.prompt == []:
            raise ValueError("the prompt is empty; give at least one token")
        if len(self.prompts()) * (self.n_cmpl or self.n) > MOST_ANSWERS:
            raise ValueError(f"prompts times 'n_cmpl' make more than {MOST_ANSWERS} answers; ask for fewer at once")
        return self


class TokenizeBody(Body):
    """POST /tokenize."""

    content: str | Mixed = Field(default_factory=list, description="Text, or a list of texts and token ids.")
    add_special: bool = Field(False, description="Puts the begin token first where the model wants one.")
    parse_special: bool = Field(True, description="Control tokens written in the text are read as such.")
    with_pieces: bool = Field(False, description="Each token comes with its text, or its bytes where they are no text.")


class DetokenizeBody(Body):
    """POST /detokenize."""

    tokens: list[int] = Field(default_factory=list, description="Token ids.")


class SlotBody(Body):
    """POST /slots/{id_slot}."""

    filename: str = Field("", description="A name in --slot-save-path, for saving and restoring.")


def _plain(prompt: Prompt) -> str | Mixed:
    return prompt.prompt_string if isinstance(prompt, PromptObject) else prompt
