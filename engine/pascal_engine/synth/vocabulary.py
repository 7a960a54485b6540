"""A byte-level vocabulary of any size: learned from a few sentences, filled up with unused tokens."""

import json

from gguf import GGUFWriter, TokenType
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from pascal_engine.tokenizer.pre import PRE_TOKENIZERS

_PRE = "qwen35"
_CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_MARKUP = ("<think>", "</think>")
_LARGEST_LEARNED = 2048
_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_TEXT = """The river runs slowly through the old town, and in the evening the lights of the houses shine on the water.
People sit in front of the cafés, talk about the day and wait for the night to come. What would you like to know? There
are many questions that a short answer cannot settle, and there are others that need only a number: 1, 2, 3, 10 or 2048.
Write a function that takes a list of words and returns the longest one; explain each step, then give an example.
def longest(words):
    return max(words, key=len)  # the first of the longest words
for index in range(10): print(f"{index} {index * index}")
Please translate the following sentence into another language, summarise the text above in three points, and compare the
two proposals with respect to their cost, their quality and the time that they would take."""


def write_vocabulary(writer: GGUFWriter, n_vocab: int) -> None:
    """Writes the tokenizer's keys for `n_vocab` tokens and a ChatML template."""
    learned, merges = _learn(min(n_vocab - len(_CONTROL) - len(_MARKUP), _LARGEST_LEARNED))
    named = [*learned, *_CONTROL, *_MARKUP]
    kinds = [TokenType.NORMAL] * len(learned)
    kinds += [TokenType.CONTROL] * len(_CONTROL) + [TokenType.USER_DEFINED] * len(_MARKUP)
    n_unused = n_vocab - len(named)
    tokens = named + [f"[unused{number}]" for number in range(n_unused)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_PRE)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds + [TokenType.UNUSED] * n_unused)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_chat_template(_TEMPLATE)


def _learn(most: int) -> tuple[list[str], list[str]]:
    """Tokens in the byte-level alphabet, and the merges that make them."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = PRE_TOKENIZERS[_PRE].build()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe.train_from_iterator(
        [_TEXT], trainers.BpeTrainer(vocab_size=most, initial_alphabet=alphabet, show_progress=False)
    )
    model = json.loads(bpe.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), [" ".join(merge) for merge in model["merges"]]
