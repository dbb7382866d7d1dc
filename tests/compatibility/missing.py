"""What cuda.core 1.2 has and cudamod has not, and what to use instead.

    python missing.py

records what there is in the installed cuda.core, and writes the table into docs/cuda-core.md.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
SURFACE = HERE / "surface.json"
PAGE = HERE.parents[1] / "docs" / "cuda-core.md"

#: By names, a class's member as ``Class.member``: what to use instead.
MISSING: dict[tuple[str, ...], str] = {
    ("LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM"): (
        "`device.default_stream`, which belongs to its device; `Stream.from_handle(1)` and `(2)` "
        "are those of the current context"
    ),
    ("graph", "Device.create_graph_builder", "Stream.create_graph_builder"): (
        "`stream.begin_capture()` and `end_capture()`, which answers a `Graph`; `LaunchSequence` "
        "for launches alone ([graphs](graphs.md))"
    ),
    ("GraphMemoryResource",): "memory that is allocated before the capture",
    ("Program.handle", "Linker.handle"): (
        "none: a compiler's handle lives for one call, so that threads can share the object"
    ),
    ("TensorMapDescriptor", "TensorMapDescriptorOptions"): (
        "`TensorMap` ([launching](launching.md))"
    ),
    (
        "ContextOptions",
        "DeviceResources",
        "SMResource",
        "SMResourceOptions",
        "WorkqueueResource",
        "WorkqueueResourceOptions",
        "Device.create_context",
        "Device.resources",
        "Stream.resources",
        "Context.close",
        "Context.create_stream",
        "Context.is_closed",
        "Context.is_green",
        "Context.resources",
    ): "green contexts by `cudamod.driver`; streams made in them are accepted",
    ("VirtualMemoryResource", "VirtualMemoryResourceOptions"): (
        "`cuMemCreate` and its kin in `cudamod.driver`, and `Buffer.from_handle`"
    ),
    ("ManagedBuffer", "Host"): "`cuMemAdvise` and `cuMemPrefetchAsync` in `cudamod.driver`",
    (
        "GraphicsResource",
        "texture",
        "Device.create_mipmapped_array",
        "Device.create_opaque_array",
        "Device.create_surface_object",
        "Device.create_texture_object",
    ): "handles of textures and surfaces are passed as integers",
    ("system", "checkpoint", "Device.to_system_device"): "none: not about kernels",
    ("typing",): "plain `str` where cuda.core has an enumeration of strings",
    ("utils",): "`CompileCache` for the caches of programs; tensors are passed as they are",
    ("Buffer.__buffer__",): "`numpy.from_dlpack(buffer)`, for memory that the host reaches",
}

_PROTOCOLS = {
    "__buffer__",
    "__cuda_stream__",
    "__dlpack__",
    "__dlpack_device__",
    "__enter__",
    "__eq__",
    "__getitem__",
    "__hash__",
    "__int__",
    "__reduce__",
    "__sub__",
}


def _members(owner: object, *, protocols: bool) -> list[str]:
    return sorted(
        name
        for name in dir(owner)
        if not name.startswith("_") or (protocols and name in _PROTOCOLS)
    )


def surface_of(core: ModuleType) -> dict[str, list[str]]:
    """What it has: the names in it (as ""), and of its classes those of their members."""
    classes = {
        name: _members(getattr(core, name), protocols=True)
        for name in _members(core, protocols=False)
        if isinstance(getattr(core, name), type)
    }
    modules = ("checkpoint", "graph", "system", "texture", "typing", "utils")
    loose = ("LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM", "launch")
    return {"": sorted((*classes, *modules, *loose)), **classes}


def here(kind: str, name: str) -> bool:
    """Whether cudamod has it."""
    import cudamod

    if not kind:
        return hasattr(cudamod, name)
    return hasattr(getattr(cudamod, kind, None), name)


def table() -> str:
    """The table of the documentation."""
    rows = [f"| {', '.join(f'`{n}`' for n in names)} | {use} |" for names, use in MISSING.items()]
    return "\n".join(["| in cuda.core 1.2 | here |", "|---|---|", *rows])


def with_table(page: str) -> str:
    """The page with the table between its marks."""
    return re.sub(
        r"(<!-- missing -->\n).*?(<!-- end -->)",
        lambda marks: f"{marks[1]}{table()}\n{marks[2]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    import cuda.core

    SURFACE.write_text(json.dumps(surface_of(cuda.core), indent=1) + "\n")
    PAGE.write_text(with_table(PAGE.read_text()))
