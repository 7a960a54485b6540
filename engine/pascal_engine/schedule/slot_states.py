"""What an idle slot holds: saved to a file, restored from one, erased."""

from pathlib import Path

from pascal_engine.errors import SlotBusyError, StateFileError
from pascal_engine.memory import StatePools
from pascal_engine.memory.state_file import read_state, write_state
from pascal_engine.schedule.scheduler import Scheduler, Slot


class SlotStates:
    """Acts on slots between two steps of the scheduler: pass the methods to `Worker.call`.

    A slot keeps what its last sequence left until another one takes it. All methods raise `SlotBusyError` for a slot
    at work, `StateFileError` where the file or its content will not do, and return a number of tokens.
    """

    def __init__(self, scheduler: Scheduler, pools: StatePools, fingerprint: str) -> None:
        self._scheduler, self._pools, self._fingerprint = scheduler, pools, fingerprint

    def save(self, index: int, path: Path) -> int:
        """Writes the tokens and state of a slot to `path`, replacing what is there."""
        slot = self._idle(index)
        if not len(slot.held):
            raise StateFileError(f"slot {index} is empty; run a request in it before saving.")
        write_state(path, self._fingerprint, slot.held, self._pools.snapshot(slot.row, len(slot.held)))
        return len(slot.held)

    def restore(self, index: int, path: Path) -> int:
        """Fills a slot from `path`, and the prefix cache, through which a request in any slot goes on from there."""
        slot = self._idle(index)
        tokens, snapshot = read_state(path, self._fingerprint)
        if len(tokens) >= self._pools.n_ctx:
            raise StateFileError(
                f"{path} holds {len(tokens)} tokens, and a slot's context {self._pools.n_ctx};"
                " start the engine with a larger --ctx-size."
            )
        if not self._scheduler.cache.put(tokens, snapshot):
            raise StateFileError(
                f"{path} is larger than the prefix cache; start the engine with a larger --cache-bytes."
            )
        self._pools.clear(slot.row, len(slot.held))
        self._pools.load(slot.row, len(tokens), snapshot)
        slot.held = tokens
        return len(tokens)

    def erase(self, index: int) -> int:
        """Empties a slot; the prefix cache forgets what only this slot's tokens lead to."""
        slot = self._idle(index)
        n_tokens = len(slot.held)
        self._pools.clear(slot.row, n_tokens)
        self._scheduler.cache.forget(slot.held)
        slot.held = slot.held[:0]
        return n_tokens

    def _idle(self, index: int) -> Slot:
        slots = self._scheduler.slots
        if not 0 <= index < len(slots):
            raise StateFileError(f"there is no slot {index}; slots run from 0 to {len(slots) - 1}.")
        if slots[index].sequence is not None:
            raise SlotBusyError(f"slot {index} is at work; wait until its answer is done.")
        return slots[index]
