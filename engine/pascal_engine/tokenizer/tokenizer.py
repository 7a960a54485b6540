"""Byte-level BPE from the vocabulary in a GGUF file."""

import codecs
from dataclasses import dataclass

from tokenizers import AddedToken, models, normalizers
from tokenizers import Tokenizer as Bpe

from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.tokenizer.pre import PRE_TOKENIZERS, PreTokenizer

_CONTROL, _USER_DEFINED = 3, 4
_END_OF_TURN = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>")


@dataclass(frozen=True)
class Vocabulary:
    """Token texts in the byte-level alphabet, their types by the GGUF numbering, merges, and the special ids."""

    tokens: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[tuple[str, str], ...]
    pre: PreTokenizer
    bos: int | None
    eos: int | None
    end_of_generation: frozenset[int]
    add_bos: bool

    @classmethod
    def read(cls, file: ModelFile) -> "Vocabulary":
        model = file.require("tokenizer.ggml.model", str)
        if model != "gpt2":
            raise ModelError(f"{file.path}: tokenizer '{model}' is not supported; choose a model with a BPE one.")
        pre_name = file.get("tokenizer.ggml.pre", str) or "default"
        if pre_name not in PRE_TOKENIZERS:
            raise ModelError(
                f"{file.path}: pre-tokenizer '{pre_name}' is not supported; known are {', '.join(PRE_TOKENIZERS)}."
            )
        tokens = file.strings("tokenizer.ggml.tokens")
        types = file.get("tokenizer.ggml.token_type", list) or [1] * len(tokens)
        merges = [tuple(merge.split(" ", 1)) for merge in file.strings("tokenizer.ggml.merges")]
        eos, eot = (file.get(f"tokenizer.ggml.{key}_token_id", int) for key in ("eos", "eot"))
        ends = {token for token, text in enumerate(tokens) if text in _END_OF_TURN and types[token] == _CONTROL}
        pre = PRE_TOKENIZERS[pre_name]
        add_bos = file.get("tokenizer.ggml.add_bos_token", bool)
        vocabulary = cls(
            tokens=tuple(tokens),
            types=tuple(types),
            merges=tuple((merge[0], merge[-1]) for merge in merges),
            pre=pre,
            bos=file.get("tokenizer.ggml.bos_token_id", int),
            eos=eos,
            end_of_generation=frozenset(ends | {token for token in (eos, eot) if token is not None}),
            add_bos=pre.add_bos if add_bos is None else add_bos,
        )
        vocabulary._check(file)
        return vocabulary

    def _check(self, file: ModelFile) -> None:
        special = [token for token in (self.bos, self.eos) if token is not None]
        if len(self.types) != len(self.tokens) or any(token >= len(self.tokens) for token in special):
            raise ModelError(f"{file.path}: its vocabulary contradicts itself; convert the model anew.")


class Tokenizer:
    """Encodes and decodes text; token ids are those of the model file."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._plain = _build(vocabulary, {_USER_DEFINED})
        self._with_special = _build(vocabulary, {_USER_DEFINED, _CONTROL})
        self._bytes = [_to_bytes(text, kind) for text, kind in zip(vocabulary.tokens, vocabulary.types, strict=True)]

    @classmethod
    def from_file(cls, file: ModelFile) -> "Tokenizer":
        vocabulary = Vocabulary.read(file)
        try:
            return cls(vocabulary)
        except Exception as error:  # the tokenizers library raises no narrower class
            raise ModelError(f"{file.path}: its vocabulary is damaged ({error}); download it again.") from error

    @property
    def n_vocab(self) -> int:
        return len(self._vocabulary.tokens)

    @property
    def most_bytes(self) -> int:
        """Bytes of text that one token can stand for, at most; composition (NFC) shortens text up to fourfold."""
        return 4 * max(map(len, self._bytes))

    @property
    def end_of_generation(self) -> frozenset[int]:
        """Tokens that end an answer."""
        return self._vocabulary.end_of_generation

    @property
    def bos_text(self) -> str:
        return self._text(self._vocabulary.bos)

    @property
    def eos_text(self) -> str:
        return self._text(self._vocabulary.eos)

    def encode(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """Token ids of `text`. `add_special` puts the begin token first where the model wants one; `parse_special`
        reads control tokens written in the text as such, else they are plain text."""
        # Lone surrogates, which JSON can carry, have no UTF-8 form.
        text = text.encode("utf-8", "replace").decode("utf-8")
        encoder = self._with_special if parse_special else self._plain
        # Of the library's ways this is the one that lets other threads go on meanwhile: a text may take seconds.
        ids: list[int] = encoder.encode_batch_fast([text], add_special_tokens=False)[0].ids
        vocabulary = self._vocabulary
        if add_special and vocabulary.add_bos and vocabulary.bos is not None and ids[:1] != [vocabulary.bos]:
            return [vocabulary.bos, *ids]
        return ids

    def decode(self, tokens: list[int]) -> str:
        """The text of `tokens`, control tokens included; bytes that are no UTF-8 give U+FFFD."""
        return b"".join(self._bytes[token] for token in tokens).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, control tokens included."""
        return self._bytes[token]

    def piece(self, token: int) -> bytes:
        """The bytes that a generated token adds to the answer: none for a control token."""
        return b"" if self._vocabulary.types[token] == _CONTROL else self._bytes[token]

    def _text(self, token: int | None) -> str:
        return "" if token is None else self._vocabulary.tokens[token]


class Detokenizer:
    """Turns tokens into text one by one, keeping back the bytes of an unfinished character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The text that is complete with `token`."""
        return self._decoder.decode(self._tokenizer.piece(token))

    def finish(self) -> str:
        """U+FFFD if the last character was left unfinished, else nothing."""
        return self._decoder.decode(b"", final=True)


def _build(vocabulary: Vocabulary, added: set[int]) -> Bpe:
    ids = {text: token for token, text in enumerate(vocabulary.tokens)}
    model = models.BPE(
        vocab=ids, merges=list(vocabulary.merges), fuse_unk=False, ignore_merges=vocabulary.pre.ignore_merges
    )
    bpe = Bpe(model)
    if vocabulary.pre.nfc:
        bpe.normalizer = normalizers.NFC()
    bpe.pre_tokenizer = vocabulary.pre.build()
    bpe.add_tokens(
        [
            AddedToken(text, normalized=False, special=False)
            for text, kind in zip(vocabulary.tokens, vocabulary.types, strict=True)
            if kind in added
        ]
    )
    return bpe


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable character for each byte: printable bytes stand for themselves, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()


def _to_bytes(text: str, kind: int) -> bytes:
    """The bytes of a token: control and user-defined tokens are written as plain text in the file."""
    if kind in (_CONTROL, _USER_DEFINED) or any(character not in _BYTES for character in text):
        return text.encode("utf-8", "replace")
    return bytes(_BYTES[character] for character in text)
