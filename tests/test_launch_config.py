"""LaunchConfig: what it takes, what it refuses, and that it is a value."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import weakref
from typing import Any

import pytest

from cudamod import LaunchConfig


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value


FULL = LaunchConfig((4, 5, 6), (1, 2, 3), (7, 8, 9), 1000, True, True)


def test_fields_in_order() -> None:
    assert (FULL.grid, FULL.cluster, FULL.block, FULL.shmem_size) == (
        (4, 5, 6),
        (1, 2, 3),
        (7, 8, 9),
        1000,
    )
    assert FULL.is_cooperative is True
    assert FULL.programmatic_stream_serialization is True
    plain = LaunchConfig(grid=1, block=1)
    assert (plain.grid, plain.cluster, plain.block, plain.shmem_size) == (
        (1, 1, 1),
        None,
        (1, 1, 1),
        0,
    )
    assert plain.is_cooperative is False
    assert plain.programmatic_stream_serialization is False


@pytest.mark.parametrize("field", ["grid", "block", "cluster"])
@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (5, (5, 1, 1)),
        ((5,), (5, 1, 1)),
        ((5, 6), (5, 6, 1)),
        ((5, 6, 7), (5, 6, 7)),
        ((), (1, 1, 1)),
        (True, (1, 1, 1)),
        (Index(9), (9, 1, 1)),
        ((Index(9), 2), (9, 2, 1)),
        (2**31 - 1, (2**31 - 1, 1, 1)),
    ],
)
def test_dimensions(field: str, value: Any, stored: tuple[int, int, int]) -> None:
    config = LaunchConfig(**{"grid": 1, "block": 1, field: value})
    assert getattr(config, field) == stored
    assert all(type(d) is int for d in getattr(config, field))


def test_numpy_integers_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    config = LaunchConfig(
        grid=numpy.int32(65536),
        block=(numpy.uint8(200), numpy.int16(2)),
        cluster=numpy.uint64(2),
        shmem_size=numpy.int16(1024),
    )
    assert (config.grid, config.block, config.cluster, config.shmem_size) == (
        (65536, 1, 1),
        (200, 2, 1),
        (2, 1, 1),
        1024,
    )
    # Arithmetic in their own width would overflow here.
    assert LaunchConfig(
        grid=(numpy.uint8(255), numpy.uint8(255), numpy.uint8(255)), block=numpy.int8(127)
    ).grid == (255, 255, 255)
    for value in (numpy.array(4), numpy.array([4]), numpy.float32(4), (numpy.float64(1),)):
        with pytest.raises(ValueError, match=r"LaunchConfig.grid must be an int"):
            LaunchConfig(grid=value, block=1)


@pytest.mark.parametrize("field", ["grid", "block"])
@pytest.mark.parametrize("value", [None, [1], 1.0, "1", b"1", {1: 1}, object(), range(1)], ids=repr)
def test_what_is_no_dimension(field: str, value: Any) -> None:
    with pytest.raises(
        ValueError,
        match=rf"LaunchConfig\.{field} must be an int, or a tuple with up to 3 ints \(got <class ",
    ) as caught:
        LaunchConfig(**{"grid": 1, "block": 1, field: value})
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize("field", ["grid", "block", "cluster"])
@pytest.mark.parametrize(
    ("value", "got"),
    [
        ((1, 2, 3, 4), "tuple with length 4"),
        ((1.0,), r"\(1\.0,\)"),
        ((1, "2"), r"\(1, '2'\)"),
        ((None, 1), r"\(None, 1\)"),
        (((1,),), r"\(\(1,\),\)"),
    ],
)
def test_tuples_that_are_no_dimensions(field: str, value: Any, got: str) -> None:
    with pytest.raises(
        ValueError, match=rf"LaunchConfig\.{field} must be an int, or .* \(got {got}\)"
    ):
        LaunchConfig(**{"grid": 1, "block": 1, field: value})


def test_grid_and_block_are_required() -> None:
    for given in ({}, {"grid": 1}, {"block": 1}):
        with pytest.raises(ValueError, match="must be an int"):
            LaunchConfig(**given)


@pytest.mark.parametrize("field", ["grid", "block", "cluster"])
@pytest.mark.parametrize("value", [0, -1, False, -(2**31), Index(0)])
def test_nothing_below_one(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"LaunchConfig\.{field} value must be >= 1 \(got "):
        LaunchConfig(**{"grid": 1, "block": 1, field: value})
    for axis in range(3):
        dimensions = [1, 1, 1]
        dimensions[axis] = value
        with pytest.raises(
            ValueError, match=rf"LaunchConfig\.{field} values must be >= 1 \(got \("
        ):
            LaunchConfig(**{"grid": 1, "block": 1, field: tuple(dimensions)})


@pytest.mark.parametrize("field", ["grid", "block", "cluster"])
@pytest.mark.parametrize(
    "value", [2**32, 2**40, 2**64, 10**5000], ids=["32", "40", "64", "5000 digits"]
)
def test_what_the_driver_can_not_take(field: str, value: int) -> None:
    for given in (value, (1, value), (1, 1, value)):
        with pytest.raises(OverflowError, match=rf"LaunchConfig\.{field}: .* 32-bit"):
            LaunchConfig(**{"grid": 1, "block": 1, field: given})
    assert LaunchConfig(
        **{"grid": 1, "block": 1, "grid" if field == "cluster" else field: 2**32 - 1}
    )


def test_negative_numbers_without_digits() -> None:
    with pytest.raises(ValueError, match=r"LaunchConfig\.grid value must be >= 1"):
        LaunchConfig(grid=-(10**5000), block=1)
    with pytest.raises(ValueError, match="shmem_size must be >= 0"):
        LaunchConfig(grid=1, block=1, shmem_size=-(10**5000))


def test_a_grid_in_clusters_that_overflows() -> None:
    assert LaunchConfig(grid=2**16, cluster=2**15, block=1).grid == (2**16, 1, 1)
    for axis, name in enumerate("xyz"):
        grid, cluster = [1, 1, 1], [1, 1, 1]
        grid[axis], cluster[axis] = 2**17, 2**15
        with pytest.raises(ValueError, match=rf"LaunchConfig\.grid: .* axis {name} .*32-bit"):
            LaunchConfig(grid=tuple(grid), cluster=tuple(cluster), block=1)


def test_products_beyond_32_bits_are_no_matter_here() -> None:
    config = LaunchConfig(grid=(2**31 - 1, 65535, 65535), block=(1024, 1024, 64))
    assert config.grid == (2**31 - 1, 65535, 65535)


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (-1, ValueError, r"shmem_size must be >= 0 \(got -1\)"),
        (-(2**40), ValueError, ">= 0"),
        (2**31, OverflowError, "2147483648 bytes"),
        (2**64, OverflowError, "shmem_size"),
        (1.5, TypeError, "int or None, not float"),
        ("1", TypeError, "not str"),
        ([1], TypeError, "not list"),
        ((1,), TypeError, "not tuple"),
    ],
)
def test_shared_memory_that_is_none(value: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        LaunchConfig(grid=1, block=1, shmem_size=value)


def test_shared_memory() -> None:
    with pytest.raises(OverflowError, match="shmem_size"):
        LaunchConfig(grid=1, block=1, shmem_size=10**5000)
    for value, stored in ((None, 0), (0, 0), (2**31 - 1, 2**31 - 1), (Index(48), 48), (True, 1)):
        assert LaunchConfig(grid=1, block=1, shmem_size=value).shmem_size == stored


def test_flags_are_truth_values() -> None:
    for value in (1, "x", [0], True):
        assert LaunchConfig(grid=1, block=1, is_cooperative=value).is_cooperative is True
    for value in (0, "", None, False):
        assert (
            LaunchConfig(
                grid=1, block=1, programmatic_stream_serialization=value
            ).programmatic_stream_serialization
            is False
        )

    class Neither:
        def __bool__(self) -> bool:
            raise LookupError("neither")

    with pytest.raises(LookupError):
        LaunchConfig(grid=1, block=1, is_cooperative=Neither())


def test_errors_of_index_come_out() -> None:
    class Broken:
        def __index__(self) -> int:
            raise LookupError("broken")

    for given in (
        {"grid": Broken()},
        {"block": (1, Broken())},
        {"shmem_size": Broken()},
        {"cluster": Broken()},
    ):
        with pytest.raises(LookupError, match="broken"):
            LaunchConfig(**{"grid": 1, "block": 1, **given})
    with pytest.raises(TypeError):
        LaunchConfig(grid=Index("x"), block=1)


def test_unknown_and_too_many_arguments() -> None:
    for call in (
        lambda: LaunchConfig(1, None, 1, 0, False, False, 1),
        lambda: LaunchConfig(grid=1, block=1, cooperative_launch=True),
        lambda: LaunchConfig(1, None, 1, grid=1),
    ):
        with pytest.raises(TypeError):
            call()


VARIANTS = [
    FULL,
    *(
        LaunchConfig(grid, cluster, block, shmem, cooperative, serialization)
        for grid, cluster, block, shmem, (cooperative, serialization) in itertools.product(
            [1, (1, 2)],
            [None, 1, (1, 2)],
            [1, 2],
            [0, 1],
            [(False, False), (True, False), (False, True)],
        )
    ),
]


def test_names_that_are_not_interned() -> None:
    """The usual call compares names by identity; these are equal, but others."""
    given: dict[str, Any] = {"grid": (1, 2, 3), "block": 4, "shmem_size": 5, "priority": -1}
    other = {"".join(list(name)): value for name, value in given.items()}
    assert not any(a is b for a, b in zip(given, other, strict=True))
    assert LaunchConfig(**other) == LaunchConfig(**given)
    for name in ("grid", "".join(list("grid")), "shmem_size"):
        with pytest.raises(TypeError, match=rf"given by name \('{name}'\) and position"):
            LaunchConfig(1, None, 1, 1, **{name: 1})


def test_equality_and_hash_use_all_fields() -> None:
    assert len(set(VARIANTS)) == len(VARIANTS)
    assert len({hash(v) for v in VARIANTS}) > len(VARIANTS) * 0.9
    for a, b in itertools.combinations(VARIANTS, 2):
        assert a != b
    same = LaunchConfig(grid=(1, 1), block=(2, 1, 1))
    other = LaunchConfig(grid=True, block=2, shmem_size=None)
    assert same == other
    assert hash(same) == hash(other)
    for stranger in (None, 1, (1, 1, 1), object()):
        assert same != stranger


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_can_be_pickled(protocol: int) -> None:
    for config in VARIANTS:
        assert pickle.loads(pickle.dumps(config, protocol)) == config


def test_it_can_be_copied_and_written() -> None:
    for config in VARIANTS:
        assert copy.copy(config) == config == copy.deepcopy(config)
        assert eval(repr(config), {"LaunchConfig": LaunchConfig}) == config
    assert repr(FULL) == (
        "LaunchConfig(grid=(4, 5, 6), cluster=(1, 2, 3), block=(7, 8, 9), shmem_size=1000, "
        "is_cooperative=True, programmatic_stream_serialization=True)"
    )


def test_it_is_frozen() -> None:
    for field in (
        "grid",
        "cluster",
        "block",
        "shmem_size",
        "is_cooperative",
        "programmatic_stream_serialization",
        "other",
    ):
        with pytest.raises(AttributeError):
            setattr(FULL, field, 1)
        with pytest.raises(AttributeError):
            delattr(FULL, field)
    before = FULL.grid
    FULL.__init__(1, None, 1)  # type: ignore[misc]
    assert FULL.grid == before


def test_no_half_built_object_exists() -> None:
    with pytest.raises(ValueError):
        LaunchConfig.__new__(LaunchConfig)
    reference = weakref.ref(config := LaunchConfig(grid=1, block=1))
    del config
    gc.collect()
    assert reference() is None


def test_a_subclass() -> None:
    class Mine(LaunchConfig):
        pass

    mine = Mine(grid=2, block=3)
    assert type(mine) is Mine
    assert mine.grid == (2, 1, 1)
    assert mine == LaunchConfig(grid=2, block=3)
