"""Devices, and what they can do."""

from __future__ import annotations

from typing import NamedTuple

from cudamod._core import Device

__all__ = ["ComputeCapability", "Device"]


class ComputeCapability(NamedTuple):
    """Of :attr:`Device.compute_capability`: ``(9, 0)`` for sm_90."""

    major: int
    minor: int
