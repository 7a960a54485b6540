"""The exceptions that reach a person: each message is one sentence that says what to do."""


class ModelError(Exception):
    """The model cannot be served: its file is missing, damaged or not supported, or it does not fit in memory.

    Texts of a damaged file may be part of the message, so what a terminal cannot show becomes a question mark."""

    def __init__(self, message: str) -> None:
        super().__init__("".join(character if character.isprintable() else "?" for character in message))


class PromptTooLongError(Exception):
    """The prompt has more tokens than a slot's context can hold."""

    def __init__(self, n_prompt: int, n_ctx: int) -> None:
        super().__init__(
            f"the request has {n_prompt} tokens, but a slot's context holds {n_ctx} and needs room for one more;"
            " shorten the prompt or start the engine with a larger --ctx-size"
        )
        self.n_prompt = n_prompt
        self.n_ctx = n_ctx


class QueueFullError(Exception):
    """Too many requests wait for a slot already."""


class NoSuchSlotError(Exception):
    """A request names a slot that the engine does not have."""

    def __init__(self, slot: int, n_slots: int) -> None:
        super().__init__(f"there is no slot {slot}; slots run from 0 to {n_slots - 1}")


class SlotBusyError(Exception):
    """A slot at work cannot be saved, restored or erased."""


class StateFileError(ModelError):
    """A slot's state cannot be saved or restored: the message says why."""
