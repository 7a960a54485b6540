"""The operations a backend must offer; the forward pass is written against these alone.

Two laws bind every backend. *Row invariance*: what an operation computes for a token is bit for bit a function of its
own sequence, never of the others in the batch, of the row, or of the padding. *State*: pools change only in the rows
that the batch names, and only by its valid tokens.

What a weight is multiplied by depends on its type, and is the same in every backend:

- F32, F16, BF16: the activations in float32.
- Q2_K to Q6_K and the IQ types but IQ4_NL: activations in blocks of 256, each an int8 vector and one scale.
- Q4_0 to Q8_0 and IQ4_NL: the same in blocks of 32.

The scale of a block is amax / 127 in float32, where amax is the largest magnitude in it; its values are
x * (127 / amax), rounded half to even. Scales of blocks of 32 are then rounded to 11 significant bits, half to even:
those of Q8_0 in GGUF files, but without a float16's narrow range. A block with amax < 1e-30 is all zero, one with a NaN
has NaN for its scale.
Rows of weights hold whole blocks of their type.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import Batch
from pascal_engine.gguf.rows import Rows

Tensor: TypeAlias = Any
"""An array of the backend's own kind; the forward pass only slices its last axis and reshapes it."""

KvKind: TypeAlias = Literal["f32", "f16", "q8_0", "q4_0"]
"""Number format of keys or values: the latter two in blocks of 32, laid out and rounded as in GGUF files."""

F32 = npt.NDArray[np.float32]
HostArray = npt.NDArray[Any]


class Backend(Protocol):
    """Arithmetic on tensors [n, T, ...] of float32, and the pools of state.

    A backend may leave padding out: its n is then the number of all valid tokens, sequence after sequence, its T is 1.
    """

    @property
    def uniform(self) -> bool:
        """Whether a token's bits are the same in decode and in prefill; if not, state that decode made is never
        reused, since a request would then depend on who computed its beginning."""

    def vector(self, values: F32) -> Tensor:
        """Hands over a small weight (norms, gates)."""

    def conv_kernel(self, values: F32) -> Tensor:
        """Hands over a kernel [channels, K] of `causal_conv`."""

    def matrix(self, parts: Sequence[Rows]) -> Tensor:
        """Hands over a weight [outputs, inputs], or a stack of them [experts, outputs, inputs]; its outputs are those
        of the parts, which may be of different types, one part behind the other."""

    def zeros(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Tensor:
        """A pool of state, all zero."""

    def kv_pool(self, rows: int, pages: int, kv_heads: int, head_dim: int, kind: KvKind) -> Tensor:
        """A pool of keys or values, all zero, whose first two axes are [rows, pages]; a format that does not fit the
        heads is a `ModelError`."""

    def clear(self, pool: Tensor, row: int, used: int | None = None) -> None:
        """Zeroes row `row` of a pool, or only the first `used` entries of its second axis."""

    def copy_out(self, pool: Tensor, row: int, entries: slice = slice(None)) -> HostArray:
        """A copy in host memory of row `row` of a pool, or of these entries of its second axis: pool[row, entries]."""

    def copy_in(self, pool: Tensor, row: int, saved: HostArray, first: int = 0) -> None:
        """Writes what `copy_out` gave into row `row`, from entry `first` of the second axis on."""

    def embed(self, table: Tensor, batch: Batch) -> Tensor:
        """Embeddings [n, T, hidden] of the batch's tokens."""

    def linear(self, x: Tensor, matrix: Tensor) -> Tensor:
        """x @ matrix.T: [n, T, inputs] to [n, T, outputs]."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x / sqrt(mean(x^2) + eps) * weight over the last axis."""

    def l2_norm(self, x: Tensor, eps: float) -> Tensor:
        """x / sqrt(sum(x^2) + eps) over the last axis."""

    def silu_gate(self, x: Tensor, gate: Tensor) -> Tensor:
        """x * silu(gate)."""

    def sigmoid_gate(self, x: Tensor, gate: Tensor) -> Tensor:
        """x * sigmoid(gate)."""

    def rope_table(self, n_positions: int, inverse_frequencies: npt.NDArray[np.float64]) -> Tensor:
        """Cosines and sines of every position's angles."""

    def rope(self, x: Tensor, table: Tensor, batch: Batch) -> Tensor:
        """Rotates the first dimensions of heads [n, T, heads, head_dim]; pairs lie half the rotated width apart."""

    def attention(self, q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, batch: Batch) -> Tensor:
        """Stores k and v [n, T, kv_heads, head_dim] in the pools, and
        attends causally with q [n, T, heads, head_dim] over all that the row then holds: [n, T, heads, head_dim]."""

    def causal_conv(self, x: Tensor, kernel: Tensor, pool: Tensor, batch: Batch) -> Tensor:
        """silu of the depthwise convolution of x [n, T, channels] with a kernel over time; the pool
        [rows, K - 1, channels] holds the inputs before, and keeps the last ones."""

    def delta_gates(self, alpha: Tensor, beta: Tensor, a: Tensor, dt: Tensor) -> tuple[Tensor, Tensor]:
        """Log-decay a * softplus(alpha + dt) and write strength sigmoid(beta), each [n, T, value_heads]."""

    def delta_rule(
        self, q: Tensor, k: Tensor, v: Tensor, gates: tuple[Tensor, Tensor], pool: Tensor, batch: Batch
    ) -> Tensor:
        """The gated delta rule, token by token, for all sequences at once; q, k, v are [n, T, value_heads, D], the
        pool is [rows, value_heads, D (key), D (value)]; gives [n, T, value_heads, D].

        S *= exp(decay); S += k (beta * (v - S^T k))^T; out = S^T q / sqrt(D).
        """

    def take_heads(self, x: Tensor, heads: tuple[int, ...]) -> Tensor:
        """The heads of x [n, T, heads, D] in the order given, repeats allowed."""

    def experts(self, x: Tensor, router: Tensor, gate_up: Tensor, down: Tensor, n_used: int) -> Tensor:
        """The `n_used` most probable experts of each token, outputs weighted by their renormalised probabilities and
        summed in rank order; gate_up [experts, 2 width, hidden], down [experts, hidden, width]."""

    def last_valid(self, x: Tensor, batch: Batch) -> Tensor:
        """The last valid token of each sequence: [n, T, hidden] to [n, 1, hidden]."""

    def all_valid(self, x: Tensor, batch: Batch) -> Tensor:
        """The valid tokens alone, sequence after sequence: [n, T, hidden] to [tokens, 1, hidden]."""

    def to_numpy(self, x: Tensor) -> F32:
        """x as a NumPy array of float32."""
