"""Every weight format against the reference decoder of the gguf package, bit for bit."""

import gguf
import numpy as np
import numpy.typing as npt
import pytest
from gguf.quants import IQ2_XXS, IQ4_NL
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.gguf.quants import GRIDS, IQ4_VALUES, LAYOUTS, SIGNS, dequantize
from pascal_engine.gguf.rows import Rows
from tests.engine.synthetic import Q

Bytes = npt.NDArray[np.uint8]

TYPES = (
    *("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    *("IQ4_NL", "IQ4_XS", "IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ2_XS", "IQ2_S"),
)
# Where the blocks keep float16 scales.
HALVES = {
    **dict.fromkeys(("Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS"), (0,)),
    **dict.fromkeys(("IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ2_XS", "IQ2_S"), (0,)),
    **dict.fromkeys(("Q4_1", "Q5_1", "Q4_K", "Q5_K"), (0, 2)),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q6_K": (208,),
}
SPECIAL = np.array(
    # both zeros, one, the least and greatest subnormal, the greatest, both infinities, quiet and signalling NaNs
    [0x0000, 0x8000, 0x3C00, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0xFDFF],
    "<u2",
)


def assert_same_bits(data: Bytes, kind: Q) -> None:
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(data, kind)
    found = dequantize(data, kind)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.uint32), np.ascontiguousarray(expected).view(np.uint32))


def random_rows(kind: Q, rows: int, blocks: int, rng: np.random.Generator) -> Bytes:
    return rng.integers(0, 256, (rows, blocks * LAYOUTS[kind].n_bytes), dtype=np.uint8)


def test_all_types_are_there() -> None:
    assert {kind.name for kind in LAYOUTS} == set(TYPES)
    assert all((layout.n_weights, layout.n_bytes) == gguf.GGML_QUANT_SIZES[kind] for kind, layout in LAYOUTS.items())


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 5), blocks=st.integers(1, 9))
def test_random_blocks(name: str, seed: int, rows: int, blocks: int) -> None:
    assert_same_bits(random_rows(Q[name], rows, blocks, np.random.default_rng(seed)), Q[name])


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(content=st.binary(min_size=210, max_size=210))
def test_blocks_of_chosen_bytes(name: str, content: bytes) -> None:
    assert_same_bits(np.frombuffer(content, np.uint8)[None, : LAYOUTS[Q[name]].n_bytes], Q[name])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("fill", [0x00, 0xFF, 0x7F, 0x80, 0x0F, 0xF0, 0x55, 0xAA])
def test_blocks_of_one_byte(name: str, fill: int) -> None:
    assert_same_bits(np.full((2, 3 * LAYOUTS[Q[name]].n_bytes), fill, np.uint8), Q[name])


@pytest.mark.parametrize("name", HALVES)
def test_scales_of_every_kind(name: str) -> None:
    kind, rng = Q[name], np.random.default_rng(3)
    places = HALVES[name]
    for chosen in np.ndindex(*(len(SPECIAL),) * len(places)):
        blocks = random_rows(kind, 4, 1, rng)
        blocks[2] = 0
        blocks[3] = 0xFF
        for place, index in zip(places, chosen, strict=True):
            blocks[:, place : place + 2] = SPECIAL[index : index + 1].view(np.uint8)
        assert_same_bits(blocks, kind)


def test_every_half_is_decoded_as_the_reference_does() -> None:
    every = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(1, -1)
    for kind in (Q.F16, Q.BF16):
        assert_same_bits(every, kind)
    blocks = np.zeros((1 << 16, 34), np.uint8)
    blocks[:, :2] = every.reshape(-1, 2)
    blocks[:, 2:] = np.random.default_rng(4).integers(0, 256, (1 << 16, 32))
    assert_same_bits(blocks, Q.Q8_0)


@pytest.mark.parametrize("name", TYPES)
def test_a_matrix_larger_than_one_piece_and_a_stack_of_experts(name: str) -> None:
    kind, rng = Q[name], np.random.default_rng(5)
    layout = LAYOUTS[kind]
    data = random_rows(kind, 300, 512 // layout.n_weights, rng)
    assert_same_bits(data, kind)
    stack = Rows(kind, 512, data.reshape(3, 100, -1))
    np.testing.assert_array_equal(
        stack.decoded().view(np.uint32), dequantize(data, kind).view(np.uint32).reshape(3, 100, 512)
    )
    assert stack.n_rows == 100


@pytest.mark.parametrize("name", TYPES)
def test_data_that_lie_at_an_odd_address(name: str) -> None:
    kind = Q[name]
    n_bytes = 8 * LAYOUTS[kind].n_bytes
    room = np.random.default_rng(6).integers(0, 256, n_bytes + 1, dtype=np.uint8)
    at_odd = room[1:].reshape(1, -1)
    np.testing.assert_array_equal(
        dequantize(at_odd, kind).view(np.uint32), dequantize(at_odd.copy(), kind).view(np.uint32)
    )


def test_rows_in_another_order() -> None:
    data = random_rows(Q.Q4_K, 6, 2, np.random.default_rng(7))
    rows = Rows(Q.Q4_K, 512, data)
    taken = rows.take([5, 0, 3])
    assert taken.n_rows == 3
    np.testing.assert_array_equal(taken.data, data[[5, 0, 3]])


def test_rows_must_be_whole_blocks() -> None:
    assert LAYOUTS[Q.Q4_K].row_bytes(512) == 288
    with pytest.raises(ValueError, match="whole blocks"):
        LAYOUTS[Q.Q4_K].row_bytes(384)
    with pytest.raises(ValueError, match="reshape"):
        dequantize(np.zeros((1, 145), np.uint8), Q.Q4_K)


def test_the_code_books() -> None:
    shapes = {"IQ2_XXS": (256, 8), "IQ2_XS": (512, 8), "IQ2_S": (1024, 8), "IQ3_XXS": (256, 4), "IQ3_S": (512, 4)}
    assert {kind.name: grid.shape for kind, grid in GRIDS.items()} == shapes
    assert all(grid.dtype == np.uint8 and grid.min() > 0 for grid in GRIDS.values())
    assert SIGNS.tobytes() == IQ2_XXS.ksigns
    assert tuple(IQ4_VALUES.tolist()) == IQ4_NL.kvalues
