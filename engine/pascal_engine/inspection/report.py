"""All that is said about a model file."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gguf import GGMLQuantizationType

from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.params import HyperParams, read_params
from pascal_engine.inspection.memory import KV_BYTES, Demand, Fit, fits, places


@dataclass(frozen=True)
class TypeCount:
    """All tensors of one number format."""

    type: str
    n_tensors: int
    n_parameters: int
    n_bytes: int


@dataclass(frozen=True)
class Report:
    """`params`, `demand` and `fits` are there unless `problem` says why this engine cannot serve the model."""

    path: str
    name: str
    architecture: str
    n_parameters: int
    size_bytes: int
    types: tuple[TypeCount, ...]
    problem: str | None = None
    params: HyperParams | None = None
    demand: Demand | None = None
    fits: tuple[Fit, ...] = ()

    @classmethod
    def of(cls, file: ModelFile) -> "Report":
        """A file without an architecture is a `ModelError`."""
        report = cls(
            path=str(file.path),
            name=file.name,
            architecture=file.architecture,
            n_parameters=file.n_parameters,
            size_bytes=file.size_bytes,
            types=count_types((tensor.type, tensor.n_elements, tensor.data.nbytes) for tensor in file.tensors),
        )
        try:
            params = read_params(file)
        except ModelError as error:
            return dataclasses.replace(report, problem=str(error))
        demand = Demand.of(file, params)
        fitting = tuple(fits(demand, places(), params.context_length))
        return dataclasses.replace(report, params=params, demand=demand, fits=fitting)

    def to_json(self) -> dict[str, Any]:
        """The same as plain JSON; all sizes in bytes."""
        head = {key: getattr(self, key) for key in ("path", "name", "architecture", "n_parameters", "size_bytes")}
        return head | {
            "problem": self.problem,
            "types": [dataclasses.asdict(count) for count in self.types],
            "hyper_parameters": None if self.params is None else _parameters(self.params),
            "memory": None if self.demand is None else _memory(self.demand),
            "fits": [
                {"place": fit.place.name, "memory": fit.place.memory, "reserve": fit.place.reserve, "slots": fit.slots}
                for fit in self.fits
            ],
        }


def count_types(tensors: Iterable[tuple[GGMLQuantizationType, int, int]]) -> tuple[TypeCount, ...]:
    """The formats of tensors, each given as its format, parameters and bytes: the one with most bytes first."""
    groups = defaultdict(list)
    for kind, n_parameters, n_bytes in tensors:
        groups[kind.name].append((n_parameters, n_bytes))
    counts = [
        TypeCount(name, len(group), sum(count for count, _ in group), sum(size for _, size in group))
        for name, group in groups.items()
    ]
    return tuple(sorted(counts, key=lambda count: -count.n_bytes))


def _parameters(params: HyperParams) -> dict[str, Any]:
    """All of them; instead of flags and tables of heads how many layers are recurrent."""
    figures = dataclasses.asdict(params) | {"n_layers": params.n_layers, "n_recurrent_layers": sum(params.recurrent)}
    del figures["recurrent"]
    if figures["delta_net"] is not None:
        del figures["delta_net"]["key_head"]
    return figures


def _memory(demand: Demand) -> dict[str, Any]:
    return {
        "weights": demand.weights,
        "state_per_sequence": demand.state,
        "kv_per_1k_tokens": {kind: demand.kv(1000, kind) for kind in KV_BYTES},
    }
