"""/v1/embeddings as OpenAI shapes it, /embedding as llama-server does."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from starlette.responses import Response

from pascal_engine.engine import Engine
from pascal_engine.schedule.pooling import Pooling
from pascal_engine.schedule.sequence import Embedded, Finished, GenerationRequest
from pascal_engine.server.errors import ApiError
from pascal_engine.server.generations import Generations
from pascal_engine.server.prompts import prompt_tokens
from pascal_engine.server.respond import whole
from pascal_engine.server.schemas import IGNORED, Body

MOST_INPUTS = 2048

F32 = npt.NDArray[np.float32]
Prompt = str | list[int]


class EmbeddingsBody(Body):
    """One input or a list of them, each a text or token ids; `content` is llama-server's other name for `input`."""

    refused: ClassVar[Mapping[str, tuple[object, ...]]] = {"dimensions": ()}

    input: Prompt | list[Prompt] | None = Field(
        None, description="A text, its token ids, or a list of such inputs, at most 2048."
    )
    content: Prompt | list[Prompt] | None = Field(
        None, description="The same as `input`; the answer then has llama-server's shape on every route."
    )
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Numbers, or the bytes of float32 values, the lowest first, in base64."
    )
    embd_normalize: Annotated[int, Field(ge=-1, le=64)] = Field(
        2, description="-1: as it is; 0: to the range of 16-bit integers; 1, 2 and above: by the norm of that order."
    )
    model: str | None = Field(None, description="Any name: there is one model.", json_schema_extra=IGNORED)
    user: str = Field("", description="Changes nothing.", json_schema_extra=IGNORED)
    metadata: dict[str, Any] = Field(default_factory=dict, description="Changes nothing.", json_schema_extra=IGNORED)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.input is None) == (self.content is None):
            raise ValueError("give either 'input' or 'content'")
        if not 0 < len(self.inputs) <= MOST_INPUTS:
            raise ValueError(f"'input' must hold one text at least, and {MOST_INPUTS} at most")
        return self

    @property
    def inputs(self) -> list[Prompt]:
        """The inputs, one or several."""
        given = self.content if self.input is None else self.input
        assert given is not None
        if isinstance(given, str):
            return [given]
        several = [part for part in given if isinstance(part, str | list)]
        return several if several or not given else [[part for part in given if isinstance(part, int)]]


async def embed(engine: Engine, pooling: Pooling | None, body: EmbeddingsBody, *, openai: bool) -> Response:
    """Computes all inputs and answers in one piece; without `pooling` the server was not started for it."""
    if pooling is None:
        message = "This server does not support embeddings. Start it with `--embeddings`"
        raise ApiError(501, message, "not_supported_error")
    prompts = await asyncio.to_thread(lambda: [prompt_tokens(engine, text) for text in body.inputs])
    requests = [GenerationRequest(tuple(tokens), reuse=False, pooling=pooling) for tokens in prompts]
    run, model = Generations(engine, requests), body.model or engine.info.name
    written = _Written(run, body, model, openai=openai and body.content is None)
    return whole(written, written.answer)


class _Written:
    """The embeddings of one answer, each written as JSON when it comes: all of them at once, which may be many
    megabytes, would keep the event loop from everyone else."""

    def __init__(self, run: Generations, body: EmbeddingsBody, model: str, *, openai: bool) -> None:
        self._run, self._body, self._model = run, body, model
        self._openai = openai
        self._n_tokens = 0

    def cancel(self) -> None:
        self._run.cancel()

    async def events(self) -> AsyncIterator[tuple[int, str]]:
        async for index, event in self._run.events():
            if isinstance(event, Embedded):
                yield index, json.dumps(self._entry(index, normalized(event.values, self._body.embd_normalize)))
            elif isinstance(event, Finished):
                self._n_tokens += event.usage.prompt_total

    def answer(self, entries: list[tuple[int, str]]) -> str:
        """The whole answer, as JSON."""
        data = f"[{', '.join(entry for _, entry in sorted(entries))}]"
        if not self._openai:
            return data
        usage = {"prompt_tokens": self._n_tokens, "total_tokens": self._n_tokens}
        head = json.dumps({"object": "list", "model": self._model, "usage": usage})
        return f'{head[:-1]}, "data": {data}}}'

    def _entry(self, index: int, values: F32) -> dict[str, object]:
        if not self._openai:
            return {"index": index, "embedding": [values.tolist()]}
        entry: dict[str, object] = {"object": "embedding", "index": index}
        if self._body.encoding_format == "float":
            return entry | {"embedding": values.tolist()}
        raw = values.astype("<f4").tobytes()
        return entry | {"embedding": base64.b64encode(raw).decode(), "encoding_format": "base64"}


def normalized(values: F32, kind: int) -> F32:
    """By llama-server's numbers: -1 as it is, 0 to the range of int16, 1, 2 and above by the norm of that order."""
    if kind < 0:
        return values
    wide = values.astype(np.float64)
    size = np.abs(wide).max() / 32760 if kind == 0 else np.linalg.norm(wide, kind)
    scaled: F32 = (wide / size if size > 0 else wide).astype(np.float32)
    return scaled
