"""Slots saved to files, restored and erased."""

from pathlib import Path

import numpy as np
import pytest

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import SlotBusyError, StateFileError
from pascal_engine.memory.state_file import MAGIC, fingerprint_of
from pascal_engine.schedule.sequence import Finished, GenerationRequest
from pascal_engine.schedule.slot_states import SlotStates
from tests.engine.harness import GREEDY, Inbox, open_tiny, run, submit
from tests.engine.scripted import ScriptedModel, continuation, scheduler_of

PROMPT = tuple(place * 7 % 251 for place in range(150))


class Machine:
    """A scheduler of two slots around the scripted model, and its slot states."""

    def __init__(self, fingerprint: str = "this model", n_ctx: int = 512, budget: int = 1 << 30) -> None:
        self.scheduler = scheduler_of(ScriptedModel(), 2, budget, n_ctx)
        self.states = SlotStates(self.scheduler, self.scheduler._pools, fingerprint)

    def answer(self, prompt: tuple[int, ...], n: int = 5) -> tuple[tuple[int, ...], int]:
        """The tokens that follow `prompt`, and how many of its own were not computed."""
        inbox = Inbox()
        self.scheduler.submit(GenerationRequest(prompt, n, GREEDY, ignore_eos=True), inbox.events.append)
        while self.scheduler.has_work:
            self.scheduler.step()
        assert isinstance(inbox.end, Finished)
        return tuple(inbox.tokens), inbox.end.usage.cache_n


def saved(path: Path) -> tuple[int, ...]:
    """The tokens of a conversation whose state is now in `path`."""
    machine = Machine()
    answer, _ = machine.answer(PROMPT)
    assert machine.states.save(0, path) == 154
    return PROMPT + answer


def test_another_engine_goes_on_from_a_saved_slot(tmp_path: Path) -> None:
    path = tmp_path / "slot.bin"
    turn = (*saved(path), 1, 2, 3)
    machine = Machine()
    assert machine.states.restore(1, path) == 154
    assert machine.answer(turn) == (continuation(turn, 5), 154)
    assert list(tmp_path.iterdir()) == [path]


def test_a_restored_slot_can_be_saved_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    saved(first)
    machine = Machine()
    machine.states.restore(1, first)
    machine.states.save(1, second)
    assert first.read_bytes() == second.read_bytes()


def test_what_is_erased_is_computed_anew(tmp_path: Path) -> None:
    machine = Machine()
    answer, _ = machine.answer(PROMPT)
    assert machine.states.erase(0) == 154
    assert len(machine.scheduler.cache) == machine.scheduler.cache.used_bytes == 0
    assert machine.answer(PROMPT) == (answer, 0)
    with pytest.raises(StateFileError, match="slot 1 is empty; run a request"):
        machine.states.save(1, tmp_path / "slot.bin")


def test_erasing_leaves_what_another_conversation_shares() -> None:
    machine = Machine()
    machine.answer((*PROMPT, 1))
    machine.answer((*PROMPT, 2))
    machine.states.erase(0)
    assert machine.answer((*PROMPT, 1))[1] == 150


def test_a_slot_at_work_is_refused(tmp_path: Path) -> None:
    machine = Machine()
    machine.scheduler.submit(GenerationRequest(PROMPT, 5, GREEDY), lambda event: None)
    machine.scheduler.step()
    for action in (machine.states.erase, lambda slot: machine.states.save(slot, tmp_path / "x")):
        with pytest.raises(SlotBusyError, match="slot 0 is at work; wait"):
            action(0)
    with pytest.raises(StateFileError, match="there is no slot 2; slots run from 0 to 1"):
        machine.states.erase(2)


def test_files_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "slot.bin"
    saved(path)
    with pytest.raises(StateFileError, match="saved with another model"):
        Machine("that model").states.restore(0, path)
    with pytest.raises(StateFileError, match="holds 154 tokens, and a slot's context 128"):
        Machine(n_ctx=128).states.restore(0, path)
    with pytest.raises(StateFileError, match="larger than the prefix cache"):
        Machine(budget=1000).states.restore(0, path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "slot.bin"
    saved(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    machine = Machine()
    for _ in range(200):
        raw = bytearray(whole)
        raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        path.write_bytes(raw)
        with pytest.raises(StateFileError):
            machine.states.restore(0, path)
    for length in (0, 5, len(MAGIC), 16, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StateFileError, match=r"is no saved slot|is damaged"):
            machine.states.restore(0, path)
    with pytest.raises(StateFileError, match=r"cannot be read \(No such file"):
        machine.states.restore(0, tmp_path / "missing")
    assert machine.answer(PROMPT) == (continuation(PROMPT, 5), 0)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "slot.bin"
    saved(path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StateFileError, match=r"cannot be written \(No space left on device\); choose another path"):
        saved(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("arch", ["llama", "qwen35moe"])
def test_a_real_model_goes_on_bit_for_bit(arch: str, data: Path, tmp_path: Path) -> None:
    first, second = (open_tiny(data / f"{arch}-tiny.gguf", parallel=1, ctx=256, kv="f16") for _ in range(2))
    run(first, GenerationRequest(PROMPT, 1, GREEDY))
    first.slot_states.save(0, tmp_path / "slot")
    second.slot_states.restore(0, tmp_path / "slot")
    turn = GenerationRequest((*PROMPT, 4, 5), 20, GREEDY, ignore_eos=True)
    cold = GenerationRequest((*PROMPT, 4, 5), 20, GREEDY, ignore_eos=True, reuse=False)
    assert run(second, turn)[0].tokens == run(first, cold)[0].tokens


def test_actions_are_done_by_the_engines_thread(data: Path, tmp_path: Path) -> None:
    engine = open_tiny(data / "llama-tiny.gguf", parallel=1, ctx=256)
    submit(engine, GenerationRequest(PROMPT, 1, GREEDY))
    while engine.scheduler.has_work:
        engine.scheduler.step()
    engine.worker.start()
    try:
        assert engine.worker.call(lambda: engine.slot_states.save(0, tmp_path / "slot")).result(30) == 150
        with pytest.raises(StateFileError):
            engine.worker.call(lambda: engine.slot_states.save(7, tmp_path / "slot")).result(30)
    finally:
        engine.worker.stop()


def test_fingerprints_tell_models_and_settings_apart(data: Path, tmp_path: Path) -> None:
    path = data / "llama-tiny.gguf"
    changed = tmp_path / "changed.gguf"
    raw = bytearray(path.read_bytes())
    raw[4096] ^= 1
    changed.write_bytes(raw)
    prints = {
        fingerprint_of(path, "f32"),
        fingerprint_of(path, "f16"),
        fingerprint_of(changed, "f32"),
        fingerprint_of(data / "qwen35-tiny.gguf", "f32"),
    }
    assert len(prints) == 4
    assert fingerprint_of(path, "f32") in prints
    assert isinstance(Engine.open(path, EngineOptions(64)).slot_states, SlotStates)
