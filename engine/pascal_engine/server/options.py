"""What the HTTP face does, apart from the model behind it."""

from dataclasses import dataclass

from pascal_engine.schedule.pooling import Pooling
from pascal_engine.server.hygiene import PrefixHygiene


@dataclass(frozen=True)
class ServerOptions:
    """`prefix_hygiene` says where volatile header lines are dropped; without `pooling` there are no embeddings."""

    prefix_hygiene: PrefixHygiene = "anthropic"
    pooling: Pooling | None = None
