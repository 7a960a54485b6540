"""What an idle slot holds: saved to a file, restored from one, erased."""

from dataclasses import dataclass
from pathlib import Path

from pascal_engine.errors import SlotBusyError, StateFileError
from pascal_engine.memory import StatePools
from pascal_engine.memory.checkpoints import Snapshot
from pascal_engine.memory.prefix_cache import Tokens
from pascal_engine.memory.state_file import read_state, write_state
from pascal_engine.schedule.scheduler import Scheduler, Slot


@dataclass(frozen=True)
class SlotState:
    """The tokens of a slot and a copy of their state."""

    tokens: Tokens
    snapshot: Snapshot


class SlotStates:
    """Saves, restores and empties slots. A slot keeps what its last sequence left until another one takes it.

    `capture`, `fill` and `erase` act on slots between two steps of the scheduler: pass them to `Worker.call`. `write`
    and `read` touch files only and may be called from any thread. All raise `StateFileError` where the file or its
    content will not do, and `SlotBusyError` for a slot at work.
    """

    def __init__(self, scheduler: Scheduler, pools: StatePools, fingerprint: str) -> None:
        self._scheduler, self._pools, self._fingerprint = scheduler, pools, fingerprint

    def save(self, index: int, path: Path) -> int:
        """`capture` and `write` in one: the engine waits for the disk. Returns the number of tokens."""
        state = self.capture(index)
        self.write(state, path)
        return len(state.tokens)

    def restore(self, index: int, path: Path) -> int:
        """`read` and `fill` in one: the engine waits for the disk. Returns the number of tokens."""
        state = self.read(path)
        self.fill(index, state)
        return len(state.tokens)

    def capture(self, index: int) -> SlotState:
        """What a slot holds."""
        slot = self._idle(index)
        if not len(slot.held):
            raise StateFileError(f"slot {index} is empty; run a request in it before saving.")
        return SlotState(slot.held, self._pools.snapshot(slot.row, len(slot.held)))

    def write(self, state: SlotState, path: Path) -> None:
        """Writes `state` to `path`, replacing what is there."""
        write_state(path, self._fingerprint, state.tokens, state.snapshot)

    def read(self, path: Path) -> SlotState:
        """What `write` wrote."""
        state = SlotState(*read_state(path, self._fingerprint))
        if len(state.tokens) >= self._pools.n_ctx:
            raise StateFileError(
                f"{path} holds {len(state.tokens)} tokens, and a slot's context {self._pools.n_ctx};"
                " start the engine with a larger --ctx-size."
            )
        return state

    def fill(self, index: int, state: SlotState) -> None:
        """Gives `state` to a slot, and to the prefix cache, through which a request in any slot goes on from there."""
        slot = self._idle(index)
        if not self._scheduler.cache.put(state.tokens, state.snapshot):
            raise StateFileError(
                "the saved slot is larger than the prefix cache; start the engine with a larger --cache-bytes."
            )
        self._pools.clear(slot.row, len(slot.held))
        self._pools.load(slot.row, len(state.tokens), state.snapshot)
        slot.held = state.tokens

    def erase(self, index: int) -> int:
        """Empties a slot, and the prefix cache of what only its tokens lead to. Returns how many it held."""
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
