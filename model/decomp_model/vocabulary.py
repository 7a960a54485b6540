"""Which of the encoder's 250,002 word pieces to keep for six languages and code, and the tokenizer over them."""

from __future__ import annotations

import io
import json
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.progress import track
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import Precompiled, Replace, Sequence
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

LANGUAGES = ("en", "es", "fr", "de", "pt", "it")
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
CODE_FILES = 400
_CAPITALISED = {"de": 0.5}
_UNREACHABLE = -100.0
"""Score of the special pieces: Viterbi never picks them for a user's literal "<s>"."""


def choose(pieces: list[str], scores: list[float], size: int) -> list[int]:
    """Indices of the pieces to keep, in file order: the specials, every short Latin-script or symbol piece,
    then the most frequent by their best rank over languages and code."""
    full = tokenizer(pieces, scores)
    share = np.max([_usage(full, *_words(lang)) for lang in LANGUAGES] + [_usage(full, *_code())], axis=0)
    share[len(SPECIAL) :][[_always_kept(piece) for piece in pieces[len(SPECIAL) :]]] = np.inf
    share[: len(SPECIAL)] = np.inf
    return sorted(int(i) for i in np.argsort(-share, kind="stable")[:size])


def _always_kept(piece: str) -> bool:
    """Single characters that people type in these languages, so that nothing common becomes <unk>."""
    bare = piece.removeprefix("▁")
    return len(bare) <= 1 and all(ord(c) < 0x0500 or 0x2000 <= ord(c) < 0x2C00 or ord(c) >= 0x1F000 for c in bare)


def _words(language: str) -> tuple[list[str], list[float]]:
    from wordfreq import get_frequency_dict

    capital = _CAPITALISED.get(language, 0.15)
    texts, weights = [], []
    for word, frequency in get_frequency_dict(language, "large").items():
        texts += [word, word.capitalize()]
        weights += [frequency * (1 - capital), frequency * capital]
    return texts, weights


def _code() -> tuple[list[str], list[float]]:
    """Lines of Python's own library: the code that is on every machine."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    lines = [
        line
        for path in sorted(folder.glob("*.py"))[:CODE_FILES]
        for line in path.read_text(encoding="utf-8", errors="ignore").splitlines()
        if line.strip()
    ]
    return lines, [1.0] * len(lines)


def _usage(tokenizer: Tokenizer, texts: list[str], weights: list[float]) -> npt.NDArray[np.float64]:
    counts = np.zeros(tokenizer.get_vocab_size())
    step = 20_000
    for start in track(range(0, len(texts), step), description="counting word pieces"):
        encodings = tokenizer.encode_batch(texts[start : start + step], add_special_tokens=False)
        for encoding, weight in zip(encodings, weights[start : start + step], strict=True):
            np.add.at(counts, encoding.ids, weight)
    share: npt.NDArray[np.float64] = counts / counts.sum()
    return share


def _charsmap() -> bytes:
    """SentencePiece's built-in `nmt_nfkc` normaliser, which XLM-R uses, taken from a throw-away model."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    model = io.BytesIO()
    sentences = (f"a tiny corpus to train on, line {i}" for i in range(50))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_writer=model, vocab_size=40, hard_vocab_limit=False,
        model_type="unigram", normalization_rule_name="nmt_nfkc", minloglevel=2,
    )  # fmt: skip
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    charsmap: bytes = proto.normalizer_spec.precompiled_charsmap
    return charsmap


def tokenizer(pieces: Iterable[str], scores: Iterable[float]) -> Tokenizer:
    """A Unigram tokenizer: one segment is `<s> A </s>`, two are `<s> A </s> </s> B </s>`."""
    table = [
        (piece, _UNREACHABLE if piece in SPECIAL else round(score, 3))
        for piece, score in zip(pieces, scores, strict=True)
    ]
    made = Tokenizer(Unigram(table, unk_id=SPECIAL.index("<unk>"), byte_fallback=False))
    made.normalizer = Sequence([Replace("\u200d", " "), Precompiled(_charsmap()), Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = Metaspace(replacement="▁", prepend_scheme="always", split=True)
    made.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in SPECIAL])
    made.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", SPECIAL.index("<s>")), ("</s>", SPECIAL.index("</s>"))],
    )
    return made


def save(tokenizer: Tokenizer, path: Path) -> None:
    """The tokenizer as compact JSON."""
    path.write_text(
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
