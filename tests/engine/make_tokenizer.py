"""The small vocabulary of the tiny models: byte-level BPE, cut as each family does."""

import json

from gguf import GGUFWriter
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

VOCAB = 512

TEXT = """A router stands in front of an engine and sees when one prompt holds several independent tasks. It runs those
at the same time on idle slots and gives back one answer. The quick brown fox jumps over the lazy dog, and the dog says
nothing. Numbers such as 1 2 3 40 567 and 2026 are split into digits. Questions? Answers! def main(): return [x for x in
range(10)] # a line of code. El zorro salta sobre el perro; mañana será otro día. Grüße aus Köln, naïve café déjà vu.
Write a poem about the sea, then translate it into Spanish. Explain why the sky is blue. List three cities in France."""

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
THINK = ["<think>", "</think>"]
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[LETTERS]+|\p{N}| ?[^\sLETTERS\p{N}]+[\r\n]*"
WORDS += r"|\s*[\r\n]+|\s+(?!\S)|\s+"


def make_tokenizer(pre: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    if pre == "smollm":
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    else:
        letters = r"\p{L}" if pre == "qwen2" else r"\p{L}\p{M}"
        words = Regex(WORDS.replace("LETTERS", letters))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(words, "isolated"), byte_level])
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    size = VOCAB - len(SPECIAL) - len(THINK)
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens(THINK)
    assert tokenizer.get_vocab_size() <= VOCAB
    return tokenizer


def write_vocabulary(writer: GGUFWriter, pre: str, tokenizer: Tokenizer) -> None:
    count = tokenizer.get_vocab_size()
    tokens = [tokenizer.id_to_token(token) for token in range(count)] + [f"[unused{i}]" for i in range(count, VOCAB)]
    kinds = [3 if text in SPECIAL else 4 if text in THINK else 1 for text in tokens[:count]] + [5] * (VOCAB - count)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_chat_template(TEMPLATE)
