"""Tensor maps: what the tensor memory accelerator is told of a tensor."""

from __future__ import annotations

from cudamod import _core
from cudamod._tensor_layout import MODES, SWIZZLES, TensorLayout, choice, require_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsIndex

    from cudamod._tensor_layout import (
        Im2ColWideMode,
        Interleave,
        L2Promotion,
        OOBFill,
        Sizes,
        Swizzle,
    )

__all__ = ["TensorMap"]


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
        layout = TensorLayout(what, tensor, shape, strides, data_type)
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
        layout = TensorLayout(what, tensor, shape, strides, data_type)
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
        layout = TensorLayout(what, tensor, shape, strides, data_type)
        layout.set_modes(interleave, swizzle, l2_promotion, oob_fill)
        number = choice(what, "mode", mode, MODES)
        layout.require_rank(3)
        layout.set_element_strides(element_strides)
        layout.require(
            SWIZZLES[layout.swizzle] in ("64b", "128b", "128b_atom_32b"),
            f"swizzle {SWIZZLES[layout.swizzle]!r} must be '64b', '128b' or '128b_atom_32b'",
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
        require_memory(what, found, self._alignment, self._extent)
        _core.replace_address(self, found)

    def _with(self, layout: TensorLayout, text: str) -> TensorMap:
        self._alignment = layout.alignment
        self._extent = layout.extent
        self._text = f"{layout.data_type}{layout.shape}, {text}"
        return self

    def __repr__(self) -> str:
        return f"<TensorMap address={self.address:#x} {self._text}>"
