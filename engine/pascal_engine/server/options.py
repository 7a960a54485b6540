"""What the HTTP face is told at its start."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServerOptions:
    """`api_keys` are the keys of which every request must bring one; without any, none is needed. `slot_save_path` is
    the folder that slots are saved to; without it they cannot be. The other three switch routes on."""

    api_keys: tuple[str, ...] = ()
    slot_save_path: Path | None = None
    slots: bool = True
    metrics: bool = False
    props: bool = False
