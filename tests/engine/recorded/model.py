"""A llama model that says the alphabet, once, and ends: what it answers is known without running it."""

from pathlib import Path
from string import ascii_lowercase

import numpy as np
from gguf import GGUFReader

from tests.engine.harness import DATA
from tests.engine.synthetic import Q, SyntheticWriter

_END = "<|im_end|>"


class AlphabetWriter(SyntheticWriter):
    """After any token comes `a`, after a letter the next one, after `z` the end; where a grammar forbids that, the end
    if it may come. The layers add nothing."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "llama", (Q.F32,))

    def matrix(self, name: str, *shape: int) -> None:
        weights = np.zeros(shape, np.float32)
        if name == "token_embd":
            tokens = GGUFReader(DATA / "llama-tiny.gguf").fields["tokenizer.ggml.tokens"].contents()
            letters = [tokens.index(letter) for letter in ascii_lowercase]
            end = tokens.index(_END)
            following = np.zeros(shape, np.float32)
            following[end] = 0.5
            weights[:, len(letters)] = 1
            for place, (letter, after) in enumerate(zip(letters, [*letters[1:], end], strict=True)):
                weights[letter] = np.eye(shape[1])[place]
                following[after, place] = 1
            following[letters[0], len(letters)] = 1
            self.floats("output.weight", following)
        self.floats(f"{name}.weight", weights)
