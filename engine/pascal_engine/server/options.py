"""What the HTTP face does, apart from the model behind it."""

from dataclasses import dataclass
from pathlib import Path

from pascal_engine.schedule.pooling import Pooling
from pascal_engine.server.hygiene import PrefixHygiene


@dataclass(frozen=True)
class ServerOptions:
    """`prefix_hygiene` says where volatile header lines are dropped; without `pooling` there are no embeddings.

    `api_keys` are the keys of which every request must bring one; without any, none is needed. `cors_origins` says
    which pages in browsers may call: "*" any, "localhost" those of this machine, or one origin. `slot_save_path` is the
    folder that slots are saved to; without it they cannot be. The last three switch routes on.
    """

    prefix_hygiene: PrefixHygiene = "anthropic"
    pooling: Pooling | None = None
    api_keys: tuple[str, ...] = ()
    cors_origins: str = "*"
    slot_save_path: Path | None = None
    slots: bool = True
    metrics: bool = False
    props: bool = False
