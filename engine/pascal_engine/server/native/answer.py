"""The JSON objects that answer one prompt of /completion."""

import time
from collections.abc import Iterable
from typing import Any

from pascal_engine.engine import Engine
from pascal_engine.sampling.params import TokenProbs
from pascal_engine.schedule.sequence import Delta, Finished, GenerationRequest, Progress, Sequence
from pascal_engine.server.native.probabilities import token_probabilities
from pascal_engine.server.native.schemas import NativeCompletionBody
from pascal_engine.server.native.settings import generation_settings
from pascal_engine.server.timings import progress, timings


class Answer:
    """Collects what the engine tells about `request`, which is for the prompt number `index`."""

    def __init__(self, engine: Engine, body: NativeCompletionBody, request: GenerationRequest, index: int) -> None:
        self._engine, self._body, self._request, self._index = engine, body, request, index
        self._texts: list[str] = []
        self._tokens: list[int] = []
        self._probs: list[TokenProbs] = []

    def add(self, event: Delta | Progress) -> None:
        """Takes in an event of an answer that is sent in one piece."""
        if isinstance(event, Delta):
            self._texts.append(event.text)
            self._tokens += event.tokens
            self._probs += event.probs

    def chunk(self, event: Delta | Progress | Finished, sequence: Sequence) -> dict[str, Any]:
        """What a stream sends at `event` of `sequence`."""
        if isinstance(event, Finished):
            return selected(self._final(event, "", []), self._body.response_fields)
        self.add(event)
        text, tokens = (event.text, list(event.tokens)) if isinstance(event, Delta) else ("", [])
        chunk: dict[str, Any] = {
            "index": self._index,
            "content": text,
            "tokens": tokens,
            "stop": False,
            "id_slot": sequence.slot,
            "tokens_predicted": len(self._tokens),
            "tokens_evaluated": len(self._request.tokens),
        }
        if self._body.timings_per_token:
            chunk["timings"] = timings(sequence.usage(len(self._tokens), time.perf_counter()))
        if isinstance(event, Progress):
            chunk["prompt_progress"] = progress(event)
        elif event.probs:
            chunk["completion_probabilities"] = self._probabilities(event.probs)
        return chunk

    def whole(self, finished: Finished) -> dict[str, Any]:
        """The answer in one piece."""
        answer = self._final(finished, "".join(self._texts), self._tokens if self._body.return_tokens else [])
        if self._probs:
            # Those of the stop string's tokens are left out, as nobody sees these.
            n_hidden = len(self._engine.tokenizer.encode(finished.stopping_word)) if finished.stopping_word else 0
            answer["completion_probabilities"] = self._probabilities(self._probs[: len(self._probs) - n_hidden])
        return selected(answer, self._body.response_fields)

    def _probabilities(self, probs: Iterable[TokenProbs]) -> list[Any]:
        post_sampling = self._request.sampling.post_sampling_probs
        return token_probabilities(self._engine.tokenizer, tuple(probs), post_sampling=post_sampling)

    def _final(self, finished: Finished, content: str, tokens: list[int]) -> dict[str, Any]:
        usage, request = finished.usage, self._request
        return {
            "index": self._index,
            "content": content,
            "tokens": tokens,
            "id_slot": finished.slot,
            "stop": True,
            "model": self._engine.info.name,
            "tokens_predicted": usage.predicted_n,
            "tokens_evaluated": usage.prompt_total,
            "generation_settings": self._settings(request),
            "prompt": self._engine.tokenizer.decode(list(request.tokens)),
            "has_new_line": any("\n" in text for text in self._texts),
            "truncated": finished.truncated,
            "stop_type": finished.reason,
            "stopping_word": finished.stopping_word,
            "tokens_cached": usage.prompt_total + max(usage.predicted_n - 1, 0),
            "timings": timings(usage),
        }

    def _settings(self, request: GenerationRequest) -> dict[str, Any]:
        body = self._body
        return generation_settings(
            self._engine,
            request,
            stream=body.stream,
            timings_per_token=body.timings_per_token,
            grammar=body.grammar,
            n_keep=body.n_keep,
            n_discard=body.n_discard,
        )


def selected(answer: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """The fields of `answer` that `paths` name, inner ones with '/'; all of them where none is named, and what is not
    there is left out."""
    if not paths:
        return answer
    found = {}
    for path in paths:
        value: Any = answer
        for key in path.split("/"):
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
        if value is not _MISSING:
            found[path] = value
    return found


_MISSING = object()
