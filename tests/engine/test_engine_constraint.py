"""Grammars and schemas: what they let through, what is refused, and what a hostile one costs."""

import json
import threading
from functools import cache
from random import Random

import pytest

from pascal_engine.sampling.constraint import Constraint, ConstraintCompiler, ConstraintError, ConstraintState
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.sampling.trial import trial
from pascal_engine.schedule.sequence import Failed, Finished, GenerationRequest
from tests.engine.grammars import pattern
from tests.engine.harness import DATA, GREEDY, Inbox, drain, open_tiny, run, submit, tiny_tokenizer

ENDS = tiny_tokenizer().end_of_generation


@cache
def compiler() -> ConstraintCompiler:
    return ConstraintCompiler(tiny_tokenizer())


def feed(constraint: Constraint, text: str) -> ConstraintState | None:
    """The state after `text`, byte by byte where no longer token fits; None where the grammar forbids it."""
    state, rest = constraint.start(), text.encode()
    while rest:
        mask = state.mask()
        token = next((t for t in by_length() if rest.startswith(piece(t)) and (mask is None or mask[t])), None)
        if token is None:
            return None
        state.accept(token)
        rest = rest[len(piece(token)) :]
    return state


def piece(token: int) -> bytes:
    return tiny_tokenizer().piece(token)


@cache
def by_length() -> list[int]:
    tokens = [token for token in range(tiny_tokenizer().n_vocab) if piece(token)]
    return sorted(tokens, key=lambda token: -len(piece(token)))


def accepts(constraint: Constraint, text: str) -> bool:
    """Whether the answer may end behind `text`."""
    state = feed(constraint, text)
    mask = None if state is None else state.mask()
    return mask is not None and any(mask[token] for token in ENDS)


def test_an_answer_may_end_only_where_the_grammar_is_satisfied() -> None:
    constraint = compiler().from_regex("ab+")
    assert [accepts(constraint, text) for text in ("", "a", "ab", "abb", "abc")] == [False, False, True, True, False]
    state = feed(compiler().from_regex("ab"), "ab")
    assert state is not None
    assert state.complete
    mask = state.mask()
    assert mask is not None
    assert set(mask.nonzero()[0].tolist()) == ENDS


def test_a_schema_lets_json_through_that_fits_it() -> None:
    wanted = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    constraint = compiler().from_json_schema(wanted)
    good = ('{"name":"ä\\n","n":-3}', '{ "name" : "" }', '{"name":"<think> 漢","n":0}')
    bad = ('{"n":1}', '{"name":1}', '{"name":"","x":1}', "[]", '{"name":"a"')
    assert [accepts(constraint, text) for text in good + bad] == [True] * 3 + [False] * 5


def test_true_is_the_schema_of_any_json() -> None:
    for value in ({"a": [1, 2.5e3, None, "x"]}, [], "text", 7):
        assert accepts(compiler().from_json_schema(True), json.dumps(value))


def test_control_tokens_are_no_text() -> None:
    state = feed(compiler().from_json_schema({"type": "string"}), '"a')
    mask = None if state is None else state.mask()
    assert mask is not None
    assert not any(mask[token] for token in range(tiny_tokenizer().n_vocab) if not piece(token))


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('root ::= [a-z]+ "b"', ("ab", "aab", "bbb"), ("a", "b")),
        ('root ::= "" | "x"', ("", "x"), ("xx",)),
        ('root ::= "(" root ")" root |', ("", "()", "(())()"), ("(", ")", "())")),
        ('root ::= item ("," ws item)*\nitem ::= "a" | "b" # one\nws ::= [ \\t]*', ("a", "a,b", "a,  b"), ("a,", "c")),
        ('root ::=\n  (\n    [^a-c\\]]\n    | "]"\n  ){2,3}', ("]]", "xyz"), ("x", "ax", "wxyz")),
        ('root ::= "\\x41\\u00e4\\U0001F600\\t\\"" [-x] [y-]', ('Aä😀\t"-y', 'Aä😀\t"x-'), ("Aä",)),
        ('root ::= ("ab"+ "c"?){2}', ("abab", "ababcab"), ("ab", "abc")),
        ('root ::= . ."?"', ("ab?", "\n漢?"), ("ab",)),
        (
            'root ::= sum\nsum ::= n | sum "+" n\nn ::= [0-9]{1,2} | "(" sum ")"',
            ("1", "1+22+(3+4)"),
            ("1+", "+1", "123"),
        ),
        ('root ::= a-b\na-b ::= "x" A_B\nA_B ::= "y"\nunused ::= nowhere2\nnowhere2 ::= "z"', ("xy",), ("x", "z")),
        ('%llguidance {}\nstart: "x"', ("x",), ("y",)),
    ],
)
def test_gbnf(grammar: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    constraint = compiler().from_gbnf(grammar)
    assert [text for text in good + bad if accepts(constraint, text)] == list(good)


@pytest.mark.parametrize("seed", range(12))
def test_gbnf_and_regular_expressions_say_the_same(seed: int) -> None:
    random = Random(seed)
    regex, gbnf = pattern(random, 3)
    pair = (compiler().from_regex(regex), compiler().from_gbnf(f"root ::= {gbnf}"))
    for one, other in (pair, pair[::-1]):
        first, second, rest = one.start(), other.start(), 60
        while not first.complete and rest:
            here, there = first.mask(), second.mask()
            assert here is not None
            assert there is not None
            assert (here == there).all()
            token = int(random.choice(here.nonzero()[0]))
            for state in (first, second):
                state.accept(token)
            rest -= 1


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("", "it has no rule named 'root'"),
        ('start ::= "a"', "it has no rule named 'root'"),
        ("root ::= other", "rule 'root' uses 'other', which is not defined"),
        ('root = "a"', "line 1 should have '::=' where it has '= \"a\"'"),
        ('root ::= "a"\n\n"b"', "line 3 should have the name of a rule where it has '\"b\"'"),
        ('root ::= "a', "line 1 should have a character where it has ''"),
        ('root ::= "\\q"', "line 1 should have a character where it has '\\q\"'"),
        ("root ::= []", "line 1 should have a character between '[' and ']' where it has ''"),
        ('root ::= ("a"', "line 1 should have ')' where it has ''"),
        ('root ::= "a")', "line 1 should have the end of the line where it has ')'"),
        ('root ::= "a"{2', "line 1 should have a count such as {2,3} where it has '{2'"),
        ('root ::= "a"{3000}', "it repeats something 3000 times, and at most 2000 will do"),
        ("root ::= <[12]>", "it names tokens, which is not supported; write their text"),
        ("root ::= " + "(" * 60 + '"a"' + ")" * 60, "its parentheses are more than 50 deep"),
        ('root ::= "a"' + "?" * 60, "it repeats one thing in more than 50 ways at once"),
        ('root ::= root "a"', "no text can satisfy it"),
    ],
)
def test_a_bad_gbnf_grammar_is_refused_in_one_sentence(grammar: str, message: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        compiler().from_gbnf(grammar)
    assert str(caught.value) == f"the grammar cannot be used: {message}"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([], "a JSON schema must be an object"),
        (False, "a JSON schema must be an object"),
        ({"type": "mystery"}, "the JSON schema cannot be used: Invalid type: mystery"),
        ({"type": "array", "uniqueItems": True}, 'the JSON schema cannot be used: Unimplemented keys: ["uniqueItems"]'),
        ({"$ref": "#/$defs/none"}, "the JSON schema cannot be used: "),
        ({"type": "string", "pattern": "("}, "the JSON schema cannot be used: "),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "the JSON schema cannot be used: "),
        ({"enum": []}, "the JSON schema cannot be used: "),
        ({"type": "object", "properties": 3}, "the JSON schema cannot be used: "),
        ({"description": "x" * (1 << 18)}, "the JSON schema has 262163 characters, and at most 262144 will do"),
    ],
)
def test_a_bad_schema_is_refused_in_one_sentence(wanted: object, message: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        compiler().from_json_schema(wanted)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_bad_lark_and_bad_regular_expressions_are_refused() -> None:
    with pytest.raises(ConstraintError, match=r"the regular expression cannot be used: .*invalid regex"):
        compiler().from_regex("a(")
    with pytest.raises(ConstraintError, match="the grammar cannot be used: "):
        compiler().from_lark("start: nowhere")


def chain(depth: int) -> str:
    return "start: a0\n" + "\n".join(f"a{n}: a{n + 1}" for n in range(depth)) + f'\na{depth}: "a"'


def test_what_would_crash_or_never_end_is_refused_and_the_next_one_is_not() -> None:
    """Rules nested too deep for the stack; an automaton of 100 million states."""
    for grammar in (chain(10_000), r"start: A" + "\nA: /.*a.{30}/ & /.*b.{29}/ & ~/.*c.{20}/"):
        with pytest.raises(ConstraintError, match="takes too much time or memory"):
            compiler().from_lark(grammar)
        assert accepts(compiler().from_regex("[a-c]"), "b")


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "object", "properties": {f"{n}": {} for n in range(20_000)}},
        {"allOf": [{"anyOf": [{"properties": {f"{n}{k}": {"type": "null"}}} for k in range(8)]} for n in range(8)]},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
    ids=["properties", "product", "allOf", "loop"],
)
def test_schemas_beyond_the_bounds_are_refused(wanted: object) -> None:
    with pytest.raises(ConstraintError, match="the JSON schema cannot be used"):
        compiler().from_json_schema(wanted)


def test_nesting_beyond_any_stack_is_refused() -> None:
    wanted: dict[str, object] = {}
    for _ in range(5_000):
        wanted = {"items": wanted}
    with pytest.raises(ConstraintError, match="the JSON schema cannot be used"):
        compiler().from_json_schema(wanted)


def test_a_grammar_that_proves_too_complex_ends_its_own_request_alone() -> None:
    """It compiles, but its first character after the quote asks for a million states."""
    engine = open_tiny(DATA / "qwen35-tiny.gguf", parallel=3)
    hostile = engine.constraints.from_json_schema({"type": "string", "pattern": "^(a{1000}){1000}$"})
    sound = engine.constraints.from_json_schema({"type": "string", "pattern": "^[ab]{3}$"})

    def request(constraint: Constraint | None) -> GenerationRequest:
        return GenerationRequest((5, 6, 7), 20, SamplingParams(seed=3), constraint=constraint)

    alone = [run(engine, request(constraint))[0].tokens for constraint in (sound, None)]
    failed, *others = run(engine, request(hostile), request(sound), request(None))
    assert isinstance(failed.end, Failed)
    assert failed.end.message.startswith("the answer could not follow its grammar: ")
    assert [inbox.tokens for inbox in others] == alone


def test_requests_under_one_constraint_are_as_alone() -> None:
    engine = open_tiny(DATA / "qwen35-tiny.gguf", parallel=6)
    constraint = engine.constraints.from_json_schema(True)
    requests = [
        GenerationRequest(tuple(range(n, n + 9)), 40, SamplingParams(temperature=1.5, seed=n), constraint=constraint)
        for n in range(6)
    ]
    alone = [run(engine, request)[0].tokens for request in requests]
    assert [inbox.tokens for inbox in run(engine, *requests)] == alone


def test_a_late_constraint_holds_once_its_trigger_was_written() -> None:
    late = compiler().from_regex('\\{"n": [0-9]\\}').after("<go>")
    for before in ("<go>", "some text, <g and <go>", "<<go>"):
        state = feed(late, before)
        assert state is not None
        assert not state.complete
        mask = state.mask()
        assert mask is not None
        assert {piece(token) for token in mask.nonzero()[0]} <= {b"{", b'{"'}
        assert accepts(late, before + '{"n": 3}')
    state = feed(late, "anything <go")
    assert state is not None
    assert state.mask() is None


def test_a_token_that_begins_with_the_end_of_the_trigger_must_go_on_as_the_grammar_wants() -> None:
    """Tokens do not end where a trigger does."""
    joined = [token for token in by_length() if len(piece(token)) > 2 and piece(token).isascii()][:40]
    for token in joined:
        text = piece(token).decode()
        fits, other = compiler().from_regex(f"[{text[1]}].*"), compiler().from_regex("#+")
        assert [how.after(text[0]).start().permits(token) for how in (fits, other)] == [True, False]
        state = fits.after(text[0]).start()
        state.accept(token)
        assert state.mask() is not None


def test_a_sampler_passes_over_tokens_that_a_late_constraint_forbids() -> None:
    engine = open_tiny(DATA / "qwen35-tiny.gguf", parallel=1)
    prompt = (1, 2, 3)
    (whole,) = run(engine, GenerationRequest(prompt, 40, GREEDY, ignore_eos=True))
    at, token = next((n, t) for n, t in enumerate(whole.tokens) if len(piece(t)) > 1 and piece(t).isascii())
    trigger = whole.text[: whole.text.index(piece(token).decode()) + 1][-3:]
    late = engine.constraints.from_regex("0+1").after(trigger)
    (inbox,) = run(engine, GenerationRequest(prompt, 60, GREEDY, ignore_eos=True, constraint=late))
    assert inbox.tokens[:at] == whole.tokens[:at]
    assert inbox.tokens[at] != token
    _, found, after = inbox.text.partition(trigger)
    assert not found or set(after) <= {"0", "1"}


def test_many_threads_may_compile_at_once() -> None:
    made: list[bool] = []

    def work(n: int) -> None:
        made.append(accepts(ConstraintCompiler(tiny_tokenizer()).from_regex(f"x{{{n}}}"), "x" * n))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == [True] * 8


def test_the_process_that_tries_grammars_comes_back_after_its_end() -> None:
    trial().end()
    assert trial().error("not a grammar")
    assert accepts(compiler().from_regex("only once"), "only once")


def test_an_answer_cut_short_is_told_so() -> None:
    engine = open_tiny(DATA / "qwen35-tiny.gguf", parallel=1)
    inbox: Inbox = submit(engine, GenerationRequest((1,), 1, GREEDY, constraint=engine.constraints.from_regex("a{9}")))
    drain(engine)
    assert isinstance(inbox.end, Finished)
    assert inbox.end.reason == "limit"
