"""Tensor maps: what the tensor memory accelerator is told of a tensor."""

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

__all__ = ["TensorMap"]

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
_SWIZZLES = (
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
_MODES = ("w", "w128")

_SWIZZLE_BYTES = {"32b": 32, "64b": 64}  # all others: 128
_PADDED = ("16u4_align16b", "16u6_align16b")  # 16 values in 16 bytes of shared memory
_WIDEST = 2**40
# The range of a corner of the pixel box, by the number of spatial dimensions.
_CORNERS = {1: 32768, 2: 128, 3: 16}


class TensorMap(_core.EncodedTensorMap):
    """A tensor map descriptor (``CUtensorMap``, 128 bytes), passed to kernels by value.

    Made by :meth:`tiled`, :meth:`im2col` and :meth:`im2col_wide` from a Buffer, from a tensor of
    another library, or from an address. It keeps that memory alive, also when the Buffer is closed.

    All sequences are in the order of the shape, outermost dimension first, as in ``cuda.core``; the
    driver counts the other way round. ``strides`` are bytes. A Buffer and an address have neither
    shape nor type: ``shape`` and ``data_type`` are then needed, and ``strides`` where the tensor is
    not contiguous. Enumerations are names such as ``"128b"``, or the driver's numbers.

    Devices of compute capability 9.0 and above have tensor maps.
    """

    __slots__ = ("_alignment", "_extent", "_text")

    _alignment: int
    _extent: int
    _text: str

    @classmethod
    def tiled(
        cls,
        tensor: object,
        box_dim: Sizes,
        *,
        shape: Sizes | None = None,
        strides: Sizes | None = None,
        element_strides: Sizes | None = None,
        data_type: object = None,
        interleave: Interleave = "none",
        swizzle: Swizzle = "none",
        l2_promotion: L2Promotion = "none",
        oob_fill: OOBFill = "none",
    ) -> TensorMap:
        """A map that copies boxes of ``box_dim`` elements.

        Raises TypeError for what is no tensor and for host memory, ValueError for what the driver
        would refuse, naming the rule, RuntimeError for a closed Buffer, CUDAError when the driver
        refuses.
        """
        what = "TensorMap.tiled"
        layout = _Layout(what, tensor, shape, strides, data_type)
        layout.set_modes(interleave, swizzle, l2_promotion, oob_fill)
        layout.require_rank(3 if layout.interleave else 1)
        layout.set_element_strides(element_strides)
        box = layout.per_dimension("box_dim", box_dim)
        for size in box:
            layout.require(1 <= size <= 256, f"box_dim {box} must be in 1 .. 256")
        layout.require_inner_box(f"box_dim {box}: the innermost", box[-1])
        made: TensorMap = _core.encode_tiled(cls, layout.tensor, layout.native(), box[::-1])
        return made._with(layout, f"tiled, box {box}")

    @classmethod
    def im2col(
        cls,
        tensor: object,
        pixel_box_lower_corner: Sizes,
        pixel_box_upper_corner: Sizes,
        channels_per_pixel: SupportsIndex,
        pixels_per_column: SupportsIndex,
        *,
        shape: Sizes | None = None,
        strides: Sizes | None = None,
        element_strides: Sizes | None = None,
        data_type: object = None,
        interleave: Interleave = "none",
        swizzle: Swizzle = "none",
        l2_promotion: L2Promotion = "none",
        oob_fill: OOBFill = "none",
    ) -> TensorMap:
        """A map that copies the columns of a convolution, of a tensor N(D)(H)WC.

        The corners are offsets from the first and the last pixel, one for each spatial dimension.
        Raises as :meth:`tiled`.
        """
        what = "TensorMap.im2col"
        layout = _Layout(what, tensor, shape, strides, data_type)
        layout.set_modes(interleave, swizzle, l2_promotion, oob_fill)
        layout.require_rank(3)
        layout.set_element_strides(element_strides)
        lower = layout.corner("pixel_box_lower_corner", pixel_box_lower_corner)
        upper = layout.corner("pixel_box_upper_corner", pixel_box_upper_corner)
        layout.require_pixel_box(layout.shape[1:-1], lower, upper)
        channels, pixels = layout.pixels(channels_per_pixel, pixels_per_column)
        made: TensorMap = _core.encode_im2col(
            cls, layout.tensor, layout.native(), lower[::-1], upper[::-1], channels, pixels
        )
        return made._with(layout, f"im2col, {pixels} pixels of {channels} channels")

    @classmethod
    def im2col_wide(
        cls,
        tensor: object,
        pixel_box_lower_corner_width: SupportsIndex,
        pixel_box_upper_corner_width: SupportsIndex,
        channels_per_pixel: SupportsIndex,
        pixels_per_column: SupportsIndex,
        *,
        shape: Sizes | None = None,
        strides: Sizes | None = None,
        element_strides: Sizes | None = None,
        data_type: object = None,
        interleave: Interleave = "none",
        mode: Im2ColWideMode = "w",
        swizzle: Swizzle = "128b",
        l2_promotion: L2Promotion = "none",
        oob_fill: OOBFill = "none",
    ) -> TensorMap:
        """A map as :meth:`im2col`'s that copies along the width only.

        It needs a driver of CUDA 12.8 and a device of compute capability 10.0. Raises as
        :meth:`tiled`, DriverTooOldError with an older driver.
        """
        what = "TensorMap.im2col_wide"
        layout = _Layout(what, tensor, shape, strides, data_type)
        layout.set_modes(interleave, swizzle, l2_promotion, oob_fill)
        number = _choice(what, "mode", mode, _MODES)
        layout.require_rank(3)
        layout.set_element_strides(element_strides)
        layout.require(
            _SWIZZLES[layout.swizzle] in ("64b", "128b", "128b_atom_32b"),
            f"swizzle {_SWIZZLES[layout.swizzle]!r} must be '64b', '128b' or '128b_atom_32b'",
        )
        lower = layout.number("pixel_box_lower_corner_width", pixel_box_lower_corner_width)
        upper = layout.number("pixel_box_upper_corner_width", pixel_box_upper_corner_width)
        for name, value in (("lower", lower), ("upper", upper)):
            layout.require(
                -32768 <= value <= 32767,
                f"pixel_box_{name}_corner_width {value} must be in -32768 .. 32767",
            )
        layout.require_pixel_box(layout.shape[-2:-1], (lower,), (upper,))
        channels, pixels = layout.pixels(channels_per_pixel, pixels_per_column)
        made: TensorMap = _core.encode_im2col_wide(
            cls, layout.tensor, layout.native(), lower, upper, channels, pixels, number
        )
        return made._with(layout, f"im2col_wide, {pixels} pixels of {channels} channels")

    def replace_address(self, tensor: object) -> None:
        """Describe a tensor of the same shape, strides and type elsewhere from now on.

        The memory described until now is let go. Launches take the map as it is when they are
        called. Raises as :meth:`tiled`; the map is then unchanged.
        """
        what = "TensorMap.replace_address"
        found = _core.read_tensor(tensor, what)
        if self.device is not None and found.device not in (-1, self.device.device_id):
            raise ValueError(
                f"{what}: the tensor lies on device {found.device}, "
                f"but the map describes memory of device {self.device.device_id}"
            )
        _require_memory(what, found, self._alignment, self._extent)
        _core.replace_address(self, found)

    def _with(self, layout: _Layout, text: str) -> TensorMap:
        self._alignment = layout.alignment
        self._extent = layout.extent
        self._text = f"{layout.data_type}{layout.shape}, {text}"
        return self

    def __repr__(self) -> str:
        return f"<TensorMap address={self.address:#x} {self._text}>"


class _Layout:
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
        self.interleave = _choice(what, "interleave", interleave, _INTERLEAVES)
        self.swizzle = _choice(what, "swizzle", swizzle, _SWIZZLES)
        self.l2_promotion = _choice(what, "l2_promotion", l2_promotion, _L2_PROMOTIONS)
        self.oob_fill = _choice(what, "oob_fill", oob_fill, _OOB_FILLS)
        wide = _INTERLEAVES[self.interleave] == "32b"
        padded = self.data_type in _PADDED
        self.require(
            not wide or _SWIZZLES[self.swizzle] == "32b", "interleave '32b' needs swizzle '32b'"
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
            not padded or _SWIZZLES[self.swizzle] in allowed,
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
        _require_memory(self.what, self.tensor, self.alignment, self.extent)

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
        swizzle = _SWIZZLES[self.swizzle]
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


def _require_memory(what: str, tensor: _core.Tensor, alignment: int, extent: int) -> None:
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


def _choice(what: str, name: str, value: object, names: tuple[str, ...]) -> int:
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
