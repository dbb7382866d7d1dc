"""The layout of a tensor as the encoders of tensor maps take it."""

from __future__ import annotations

import operator

from cudamod import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, SupportsIndex

    Sizes = tuple[SupportsIndex, ...] | list[SupportsIndex] | SupportsIndex
    Interleave = Literal["none", "16b", "32b"] | int
    Swizzle = (
        Literal[
            "none",
            "32b",
            "64b",
            "128b",
            "128b_atom_32b",
            "128b_atom_32b_flip_8b",
            "128b_atom_64b",
        ]
        | int
    )
    L2Promotion = Literal["none", "64b", "128b", "256b"] | int
    OOBFill = Literal["none", "nan_request_zero_fma"] | int
    Im2ColWideMode = Literal["w", "w128"] | int

# In the order of the driver's enumerators, with the bits of an element.
_DATA_TYPES = {
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "int32": 32,
    "uint64": 64,
    "int64": 64,
    "float16": 16,
    "float32": 32,
    "float64": 64,
    "bfloat16": 16,
    "float32_ftz": 32,
    "tfloat32": 32,
    "tfloat32_ftz": 32,
    "16u4_align8b": 4,
    "16u4_align16b": 4,
    "16u6_align16b": 6,
}
_INTERLEAVES = ("none", "16b", "32b")
SWIZZLES = (
    "none",
    "32b",
    "64b",
    "128b",
    "128b_atom_32b",
    "128b_atom_32b_flip_8b",
    "128b_atom_64b",
)
_L2_PROMOTIONS = ("none", "64b", "128b", "256b")
_OOB_FILLS = ("none", "nan_request_zero_fma")
MODES = ("w", "w128")

_SWIZZLE_BYTES = {"32b": 32, "64b": 64}  # all others: 128
_PADDED = ("16u4_align16b", "16u6_align16b")  # 16 values in 16 bytes of shared memory
_WIDEST = 2**40
# The range of a corner of the pixel box, by the number of spatial dimensions.
_CORNERS = {1: 32768, 2: 128, 3: 16}


class TensorLayout:
    """The description of a tensor as the encoders take it, checked by their documented rules."""

    def __init__(
        self, what: str, tensor: object, shape: Sizes | None, strides: Any, data_type: object
    ) -> None:
        self.what = what
        self.tensor = _core.read_tensor(tensor, what)
        self.data_type = self._data_type(data_type)
        self.bits = _DATA_TYPES[self.data_type]
        if self.tensor.shape is None:
            if shape is None:
                raise TypeError(f"{what}: a Buffer and an address need shape=")
            self.shape = _sizes(what, "shape", shape)
        elif shape is not None or strides is not None:
            raise TypeError(f"{what}: the tensor has its own shape and strides")
        else:
            self.shape = tuple(self.tensor.shape)
        self.rank = len(self.shape)
        self.require(1 <= self.rank <= 5, f"a tensor has 1 to 5 dimensions, not {self.rank}")
        for size in self.shape:
            self.require(1 <= size <= 2**32, f"shape {self.shape} must be in 1 .. 2**32")
        self.strides = self._strides(strides)

    def require(self, kept: bool, rule: str) -> None:
        if not kept:
            raise ValueError(f"{self.what}: {rule}")

    def number(self, name: str, value: SupportsIndex) -> int:
        return _number(self.what, name, value)

    def _data_type(self, given: object) -> str:
        if given is None:
            name = self.tensor.data_type
            if not name and self.tensor.shape is None:
                raise TypeError(f"{self.what}: a Buffer and an address need data_type=")
            self.require(bool(name), "the tensor's type is none of a tensor map's; give data_type=")
        else:
            name = _type_name(self.what, given)
        self.require(
            name in _DATA_TYPES,
            f"data type {name!r} is none of a tensor map's ({', '.join(_DATA_TYPES)})",
        )
        own = _DATA_TYPES.get(self.tensor.data_type)
        self.require(
            own in (None, _DATA_TYPES[name]),
            f"data type {name!r} has another size than the tensor's {self.tensor.data_type!r}",
        )
        return name

    def _strides(self, given: Sizes | None) -> tuple[int, ...]:
        """Bytes from one element to the next along each dimension but the innermost."""
        strides: tuple[int, ...]
        if given is not None:
            strides = _sizes(self.what, "strides", given)
        elif self.tensor.strides is not None:
            strides = tuple(self.tensor.strides)
        else:
            inner = self.shape[-1] * self.bits
            self.require(inner % 8 == 0, f"shape {self.shape}: a row must be whole bytes")
            found = [inner // 8]
            for size in self.shape[-2:0:-1]:
                found.append(found[-1] * size)
            strides = tuple(found[::-1])[1 - self.rank :] if self.rank > 1 else ()
            return strides
        self.require(
            len(strides) in (self.rank, self.rank - 1),
            f"strides {strides} must have one for each of the {self.rank} dimensions; "
            "the innermost may be left out",
        )
        if len(strides) == self.rank:
            inner = strides[-1]
            self.require(
                8 * inner == self.bits or self.shape[-1] == 1,
                f"strides {strides}: the innermost dimension must be contiguous",
            )
            strides = strides[:-1]
        return strides

    def set_modes(
        self,
        interleave: Interleave,
        swizzle: Swizzle,
        l2_promotion: L2Promotion,
        oob_fill: OOBFill,
    ) -> None:
        what = self.what
        self.interleave = choice(what, "interleave", interleave, _INTERLEAVES)
        self.swizzle = choice(what, "swizzle", swizzle, SWIZZLES)
        self.l2_promotion = choice(what, "l2_promotion", l2_promotion, _L2_PROMOTIONS)
        self.oob_fill = choice(what, "oob_fill", oob_fill, _OOB_FILLS)
        wide = _INTERLEAVES[self.interleave] == "32b"
        padded = self.data_type in _PADDED
        self.require(
            not wide or SWIZZLES[self.swizzle] == "32b", "interleave '32b' needs swizzle '32b'"
        )
        self.require(
            not self.oob_fill or "float" in self.data_type,
            f"oob_fill 'nan_request_zero_fma' needs a floating-point type, not {self.data_type!r}",
        )
        self.require(
            self.data_type != "16u6_align16b" or not self.interleave,
            "data type '16u6_align16b' needs interleave 'none'",
        )
        allowed: tuple[str, ...] = ("none", "128b", "128b_atom_32b")
        if self.data_type == "16u6_align16b":
            allowed = (*allowed, "128b_atom_64b")
        self.require(
            not padded or SWIZZLES[self.swizzle] in allowed,
            f"data type {self.data_type!r} needs one of the swizzles {allowed}",
        )
        self.alignment = 32 if wide or padded else 16
        for stride in self.strides:
            self.require(
                0 <= stride < _WIDEST and stride % self.alignment == 0,
                f"strides {self.strides} must be multiples of {self.alignment} bytes below 2**40",
            )
        multiple = 128 if padded else 2 if self.data_type == "16u4_align8b" else 1
        self.require(
            self.shape[-1] % multiple == 0,
            f"shape {self.shape}: with data type {self.data_type!r} the innermost must be a "
            f"multiple of {multiple}",
        )
        row = -(-self.shape[-1] * self.bits // 8)
        outer = zip(self.shape[:-1], self.strides, strict=True)
        self.extent = row + sum((size - 1) * stride for size, stride in outer)
        require_memory(self.what, self.tensor, self.alignment, self.extent)

    def require_rank(self, least: int) -> None:
        needed = "this map needs"
        if self.interleave:
            needed = f"interleave {_INTERLEAVES[self.interleave]!r} needs"
        self.require(
            self.rank >= least,
            f"{needed} at least {least} dimensions, the tensor has {self.rank}",
        )

    def per_dimension(self, name: str, value: Sizes) -> tuple[int, ...]:
        sizes = _sizes(self.what, name, value)
        self.require(
            len(sizes) == self.rank,
            f"{name} {sizes} must have one for each of the {self.rank} dimensions",
        )
        return sizes

    def set_element_strides(self, value: Sizes | None) -> None:
        self.element_strides = (
            (1,) * self.rank if value is None else self.per_dimension("element_strides", value)
        )
        for stride in self.element_strides:
            self.require(
                1 <= stride <= 8, f"element_strides {self.element_strides} must be in 1 .. 8"
            )

    def require_inner_box(self, name: str, elements: int) -> None:
        if self.data_type in _PADDED:
            self.require(elements == 128, f"{name} must be 128 with data type {self.data_type!r}")
            return
        if self.interleave:
            return
        bits = elements * self.bits
        self.require(
            bits % 128 == 0, f"{name} is {bits / 8:g} bytes, which must be a multiple of 16"
        )
        swizzle = SWIZZLES[self.swizzle]
        most = _SWIZZLE_BYTES.get(swizzle, 128)
        self.require(
            not self.swizzle or bits <= 8 * most,
            f"{name} is {bits // 8} bytes, more than the {most} of swizzle {swizzle!r}",
        )

    def corner(self, name: str, value: Sizes) -> tuple[int, ...]:
        corner = _sizes(self.what, name, value)
        spatial = self.rank - 2
        self.require(
            len(corner) == spatial,
            f"{name} {corner} must have one for each of the {spatial} spatial dimensions",
        )
        limit = _CORNERS[spatial]
        for offset in corner:
            self.require(
                -limit <= offset < limit, f"{name} {corner} must be in {-limit} .. {limit - 1}"
            )
        return corner

    def require_pixel_box(
        self, sizes: tuple[int, ...], lower: tuple[int, ...], upper: tuple[int, ...]
    ) -> None:
        for size, first, last in zip(sizes, lower, upper, strict=True):
            self.require(
                size + last - first >= 1,
                f"the pixel box from {lower} to {upper} is empty in a tensor of {sizes} pixels",
            )

    def pixels(self, channels: SupportsIndex, pixels: SupportsIndex) -> tuple[int, int]:
        each = self.number("channels_per_pixel", channels)
        self.require(1 <= each <= 256, f"channels_per_pixel {each} must be in 1 .. 256")
        column = self.number("pixels_per_column", pixels)
        self.require(1 <= column <= 1024, f"pixels_per_column {column} must be in 1 .. 1024")
        self.require_inner_box(f"channels_per_pixel {each}:", each)
        return each, column

    def native(self) -> tuple[object, ...]:
        return (
            list(_DATA_TYPES).index(self.data_type),
            self.shape[::-1],
            self.strides[::-1],
            self.element_strides[::-1],
            self.interleave,
            self.swizzle,
            self.l2_promotion,
            self.oob_fill,
        )


def require_memory(what: str, tensor: _core.Tensor, alignment: int, extent: int) -> None:
    if tensor.address == 0 or tensor.address % alignment:
        raise ValueError(
            f"{what}: address {tensor.address:#x} must be a multiple of {alignment} bytes, not null"
        )
    if tensor.size is not None and extent > tensor.size:
        raise ValueError(f"{what}: the tensor of {extent} bytes exceeds the Buffer's {tensor.size}")


def _number(what: str, name: str, value: SupportsIndex) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: {name} must be an int, not {type(value).__name__}") from None


def _sizes(what: str, name: str, value: Sizes) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(_number(what, name, size) for size in value)
    if not hasattr(value, "__index__"):
        raise TypeError(f"{what}: {name} must be an int, a tuple or a list of ints, not {value!r}")
    return (operator.index(value),)


def choice(what: str, name: str, value: object, names: tuple[str, ...]) -> int:
    if isinstance(value, str):
        if value in names:
            return names.index(value)
    elif hasattr(value, "__index__"):
        number = operator.index(value)
        if 0 <= number < len(names):
            return number
    else:
        raise TypeError(f"{what}: {name} must be one of {names}, not {value!r}")
    raise ValueError(f"{what}: {name} must be one of {names}, not {value!r}")


def _type_name(what: str, given: object) -> str:
    """The name of a data type: a name, the driver's number, or a dtype of NumPy or torch."""
    if isinstance(given, str):
        return given
    if hasattr(given, "__index__") and not isinstance(given, type):
        number = operator.index(given)
        if 0 <= number < len(_DATA_TYPES):
            return list(_DATA_TYPES)[number]
        raise ValueError(f"{what}: data type {number} is none of a tensor map's")
    for name in (getattr(given, "name", None), getattr(given, "__name__", None)):
        if isinstance(name, str):
            return name
    return str(given).rpartition(".")[2]
