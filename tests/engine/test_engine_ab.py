"""Two sides against each other: the statistics, the verdicts, and the processes."""

import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.cli import main
from pascal_engine.errors import ModelError
from pascal_engine.tools.ab.arms import Arm, Sample, Workload
from pascal_engine.tools.ab.experiment import Round, SpeedResult, interleave, judge_outputs
from pascal_engine.tools.ab.interval import _rank_sum_bound, fewest_rounds, ratio_interval

A, B = (Arm(name, ("python",), "m", ()) for name in "AB")


def sample(speed: float, tokens: str = "t", logits: str = "l") -> Sample:
    return Sample(speed, speed / 10, tokens, logits)


def rounds_of(*bits: tuple[str, str]) -> list[Round]:
    return [Round(sample(1), sample(1), sample(1, *bit)) for bit in bits]


def test_the_bounds_are_those_of_tables_of_the_signed_rank_test() -> None:
    """Two-sided 5 % and 1 %."""
    assert [_rank_sum_bound(n, 0.025) for n in (6, 7, 8, 9, 10, 12, 15, 20)] == [0, 2, 3, 5, 8, 13, 25, 52]
    assert [_rank_sum_bound(n, 0.005) for n in (8, 9, 10, 12, 15, 20)] == [0, 1, 3, 7, 15, 37]
    assert [fewest_rounds(confidence) for confidence in (0.5, 0.75, 0.95, 0.99, 0.999)] == [2, 3, 6, 8, 11]


@pytest.mark.parametrize(("n", "confidence"), [(3, 0.75), (6, 0.95), (8, 0.95), (8, 0.99), (10, 0.99)])
def test_one_lies_outside_as_seldom_as_promised(n: int, confidence: float) -> None:
    """Over all signs that the same distances may have, which for a null arm are all as likely."""
    distances = np.random.default_rng(n).exponential(size=n)
    outside = sum(
        not ratio_interval(
            [math.exp(sign * d) for sign, d in zip(signs, distances, strict=True)], confidence
        ).contains_one
        for signs in itertools.product((1, -1), repeat=n)
    )
    assert outside / 2**n <= 1 - confidence


@given(st.lists(st.floats(0.5, 2), min_size=8, max_size=20), st.floats(0.1, 10))
def test_an_interval_holds_its_estimate_and_scales(ratios: list[float], factor: float) -> None:
    found = ratio_interval(ratios, 0.99)
    assert min(ratios) * 0.999 <= found.low <= found.estimate <= found.high <= max(ratios) * 1.001
    scaled = ratio_interval([factor * ratio for ratio in ratios], 0.99)
    assert (scaled.low, scaled.estimate, scaled.high) == pytest.approx(
        (factor * found.low, factor * found.estimate, factor * found.high)
    )


def test_an_outlier_does_not_decide() -> None:
    found = ratio_interval([1.09, 1.1, 1.11] * 8 + [0.01], 0.99)
    assert found.low > 1.05
    assert found.estimate == pytest.approx(1.1, rel=0.01)
    assert not found.contains_one
    assert str(ratio_interval([1.0] * 8, 0.99)) == "1.000 [1.000, 1.000]"


def test_arms_take_turns_in_all_orders_with_the_same_seed() -> None:
    calls: list[tuple[str, int]] = []
    reports: list[tuple[int, int]] = []

    def measure(arm: Arm, seed: int) -> Sample:
        calls.append((arm.name, seed))
        return sample(len(calls))

    rounds = interleave(A, B, 6, measure, lambda *now: reports.append(now))
    assert reports == [(done, 18) for done in range(1, 19)]
    assert [seed for _, seed in calls] == sorted([0, 1, 2, 3, 4, 5] * 3)
    assert all([name for name, seed in calls if seed == number].count("B") == 1 for number in range(6))
    for arm in ("a", "null", "b"):  # each is twice the first, twice the second and twice the last of its round
        assert sorted((getattr(one, arm).prefill - 1) % 3 for one in rounds) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("factor", "null", "verdict"),
    [
        (1.0, 1.0, "no difference shown"),
        (1.02, 1.0, "B is faster"),
        (0.98, 1.0, "B is slower"),
        (1.5, 1.1, "not to be trusted: A differs from itself"),
    ],
)
def test_verdicts_on_speed(factor: float, null: float, verdict: str) -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.003, (12, 3)))
    drift = np.linspace(1, 0.5, 12)  # which pairs do not feel
    rounds = [
        Round(sample(100 * slow * x), sample(100 * null * slow * y), sample(100 * factor * slow * z))
        for slow, (x, y, z) in zip(drift, noise.tolist(), strict=True)
    ]
    for phase in ("prefill", "decode"):
        found = SpeedResult.of(phase, rounds, 0.99)  # type: ignore[arg-type]
        assert found.verdict == verdict
        assert found.ratio.estimate == pytest.approx(factor, rel=0.01)


def test_verdicts_on_outputs() -> None:
    def never() -> float:
        raise AssertionError("the bits are the same")

    same = judge_outputs(rounds_of(("t", "l"), ("t", "l")), never, 0.01)
    assert (same.agrees, same.verdict) == (True, "the same bits in all 2 rounds")
    close = judge_outputs(rounds_of(("t", "l"), ("t", "x")), None, 0.01)
    assert close.agrees
    assert close.verdict.startswith("other bits, the same best tokens in 2 of 2 rounds; --text FILE")
    apart = judge_outputs(rounds_of(("t", "l"), ("y", "x")), None, 0.01)
    assert not apart.agrees
    within, beyond = (judge_outputs(rounds_of(("y", "x")), lambda kl=kl: kl, 0.01) for kl in (0.01, 0.02))  # type: ignore[misc]
    assert (within.agrees, beyond.agrees) == (True, False)
    assert beyond.verdict == "other bits; mean KL divergence 0.02, beyond the bound of 0.01"


def test_an_arm_is_read_from_flags() -> None:
    arm = Arm.parse("A", "env 'X=a b' python3", "model.gguf", "-t 2 -ctk q8_0")
    assert arm == Arm("A", ("env", "X=a b", "python3"), "model.gguf", ("-t", "2", "-ctk", "q8_0"))
    assert Arm.parse("A", None, "model.gguf", "-m 'other one.gguf' -t 2") == Arm(
        "A", (sys.executable,), "other one.gguf", ("-t", "2")
    )
    for flags, part in (("", "give -m FILE"), ("'", "quotation"), ("-t 2 -m", "give -m FILE")):
        with pytest.raises(ValueError, match=part):
            Arm.parse("A", None, None, flags)


def script(tmp_path: Path, body: str) -> str:
    """A stand-in for the Python of another build: it is started as `SCRIPT -m pascal_engine.cli COMMAND ...`."""
    path = tmp_path / "python.py"
    path.write_text(f"import sys\nflags = sys.argv[3:]\n{body}\n")
    return f"{sys.executable} {path}"


def test_a_whole_comparison_of_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = script(
        tmp_path,
        """
import json, pathlib
if flags[0] == "bench":
    speed = 200 if "-fast" in flags else 100
    row = {"speed_pp": speed, "speed_tg": speed, "tokens_sha256": "t", "logits_sha256": f"{speed}"}
    print(json.dumps([row]))
elif "--save" in flags:
    pathlib.Path(flags[flags.index("--save") + 1]).write_text(" ".join(flags))
else:
    assert "--text book --chunks 4" in pathlib.Path(flags[1]).read_text()
    print(json.dumps({"mean_kl": 0.005}))
""",
    )
    flags = ["--python-a", fake, "--python-b", fake, "-m", "model", "--rounds", "3", "--confidence", "0.75"]
    assert main(["ab", *flags, "--b=-fast", "--text", "book"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["tokens/s", "A", "B", "B", "/", "A", "A", "/", "A", "verdict"]
    assert lines[1].split()[:4] == ["prefill", "100.00", "200.00", "2.000"]
    assert lines[2].endswith("1.000 [1.000, 1.000]  B is faster")
    assert lines[3] == "outputs: other bits; mean KL divergence 0.005, within the bound of 0.01"
    assert main(["ab", *flags, "--b=-fast", "--text", "book", "--kld-bound", "0.001", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["decode"]["ratio"] == {"estimate": 2, "low": 2, "high": 2}
    assert (found["outputs"]["agrees"], found["sound"]) == (False, True)


def test_an_arm_that_does_not_repeat_itself_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = script(
        tmp_path,
        f"""
import json, pathlib
count = pathlib.Path({str(tmp_path / "count")!r})
n = len(count.read_text()) if count.exists() else 0
count.write_text("x" * (n + 1))
print(json.dumps([{{"speed_pp": 1, "speed_tg": 1, "tokens_sha256": "t", "logits_sha256": str(n)}}]))
""",
    )
    flags = ["--python-a", fake, "--python-b", fake, "-m", "model", "--rounds", "3", "--confidence", "0.75"]
    assert main(["ab", *flags]) == 1
    assert "A gave its own bits in 0 of 3 rounds only" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (
            "sys.exit('pascal-engine bench: model: there is no such file.')",
            "arm A: pascal-engine bench: model: there is",
        ),
        ("sys.exit(7)", "arm A: its process ended with code 7"),
        ("print('hello')", "arm A: its build gave no result"),
    ],
)
def test_an_arm_that_fails_is_one_sentence(
    body: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ab", "-m", "model", "--python-a", script(tmp_path, body)]) == 2
    said = capsys.readouterr().err
    assert part in said
    assert said.startswith("pascal-engine ab: ")
    assert said.count("\n") == 1


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be run"):
        Arm("B", (str(tmp_path / "none"),), "m", ()).measure(Workload(1, 1, 1), 0)


def test_wrong_flags(capsys: pytest.CaptureFixture[str]) -> None:
    for flags, part in (
        ([], "--a: there is no model; give -m FILE"),
        (["-m", "model", "--rounds", "7"], "takes 8 rounds or more"),
        (["-m", "model", "--confidence", "1"], "no number between 0 and 1"),
        (["-m", "model", "--confidence", "x"], "no number between 0 and 1"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["ab", *flags])
        assert caught.value.code == 2
        assert part in capsys.readouterr().err


def test_the_engines_own_processes(data: Path) -> None:
    """The same tokens with one thread and with two are the same bits, and other tokens are not."""
    model, workload = str(data / "qwen35-tiny.gguf"), Workload(20, 3, 2)
    one, two = (Arm.parse("A", None, model, f"-t {threads}") for threads in (1, 2))
    first, second, other = one.measure(workload, 0), two.measure(workload, 0), one.measure(workload, 1)
    assert first.prefill > 0
    assert first.decode > 0
    assert (first.tokens_sha256, first.logits_sha256) == (second.tokens_sha256, second.logits_sha256)
    assert other.logits_sha256 != first.logits_sha256
