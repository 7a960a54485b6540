"""Which number format each tensor gets: a list of patterns."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from gguf import GGMLQuantizationType as Type

from pascal_engine.errors import ModelError
from pascal_engine.gguf import TensorInfo
from pascal_engine.gguf.quants import LAYOUTS
from pascal_engine.tools.quantize.quantisers import TARGETS

_HEAD, _EMBEDDING = "output.weight", "token_embd.weight"
_KEEP = "keep"
_SHIPPED = Path(__file__).parent / "mixes"
SHIPPED = tuple(sorted(path.stem for path in _SHIPPED.glob("*.mix")))
"""Names of the mixes that come with the engine."""


@dataclass(frozen=True)
class Rule:
    """A tensor whose name fits `pattern` (`*`, `?` and `[...]` as in file names) gets the first of `types` whose blocks
    fit its rows. Without types it stays as it is."""

    pattern: str
    types: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.pattern} = {', '.join(kind.name for kind in self.types) or _KEEP}"

    @classmethod
    def parse(cls, line: str) -> "Rule":
        """From `pattern = TYPE, TYPE`, or `pattern = keep`; else ValueError."""
        pattern, equals, right = (part.strip() for part in line.partition("="))
        names = [name.strip().upper() for name in right.split(",")]
        if not pattern or not equals or not all(names):
            raise ValueError("it is not of the form 'pattern = TYPE'")
        if names == [_KEEP.upper()]:
            return cls(pattern, ())
        known = [kind.name for kind in TARGETS]
        for name in names:
            if name not in known:
                raise ValueError(f"'{name}' is no type to quantise to; choose among {', '.join(known)}, or '{_KEEP}'")
        return cls(pattern, tuple(Type[name] for name in names))


@dataclass(frozen=True)
class Change:
    """What becomes of a tensor, and by which rule."""

    tensor: TensorInfo
    type: Type
    rule: Rule | None

    @property
    def row_bytes(self) -> int:
        return LAYOUTS[self.type].row_bytes(self.tensor.shape[-1])

    @property
    def n_bytes(self) -> int:
        return self.tensor.n_elements // self.tensor.shape[-1] * self.row_bytes


@dataclass(frozen=True)
class Mix:
    """Rules; the first that matches holds."""

    rules: tuple[Rule, ...]

    @classmethod
    def open(cls, name: str) -> "Mix":
        """A shipped mix by its name, or the mix file at that path. What is wrong with it is a `ModelError`."""
        path = _SHIPPED / f"{name}.mix" if name in SHIPPED else Path(name)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"{name}: this mix cannot be read; give a text file, or one that comes along: {', '.join(SHIPPED)}."
            ) from error
        rules = []
        for number, line in enumerate(text.splitlines(), 1):
            if content := line.partition("#")[0].strip():
                try:
                    rules.append(Rule.parse(content))
                except ValueError as error:
                    raise ModelError(f"{name}, line {number}: {error}.") from error
        return cls(tuple(rules))

    def plan(self, tensors: dict[str, TensorInfo]) -> list[Change]:
        """What becomes of each tensor, in the same order."""
        tied = _HEAD not in tensors
        return [self._change(tensor, tied) for tensor in tensors.values()]

    def _change(self, tensor: TensorInfo, tied: bool) -> Change:
        name = _HEAD if tied and tensor.name == _EMBEDDING else tensor.name
        rule = next((rule for rule in self.rules if fnmatchcase(name, rule.pattern)), None)
        types = rule.types if rule else ()
        return Change(tensor, next((kind for kind in types if _fits(tensor, kind)), tensor.type), rule)


def _fits(tensor: TensorInfo, kind: Type) -> bool:
    """Floats suit all; blocks suit matrices, and stacks of them, whose rows they divide."""
    n_weights = LAYOUTS[kind].n_weights
    is_matrix = len(tensor.shape) > 1 and tensor.shape[-2] > 1
    return n_weights == 1 or (is_matrix and tensor.shape[-1] % n_weights == 0)
