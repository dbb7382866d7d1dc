"""Where cudamod differs from cuda.core 1.2 on purpose, and what of the programs shows it.

    python differences.py

writes the table into docs/cuda-core.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "cuda-core.md"


class Difference(NamedTuple):
    """One difference; ``shown`` is what the programs show with cudamod, by ``program.name``."""

    subject: str
    theirs: str
    ours: str
    reason: str
    shown: dict[str, Any]


DIFFERENCES = [
    Difference(
        "`ObjectCode` copies",
        "equal by the loaded library, so that a copy or unpickled object is never equal; `==`, "
        "`hash` and `repr` load",
        "equal by content (or path), type, mapping and load options; none of these loads",
        "a copy is the same code; comparing must not need a device",
        {f"code_travels.{how}_equal": True for how in ("pickled", "copied", "deep")},
    ),
    Difference(
        "`symbol_mapping`, kernels' names",
        "values must be bytes, a bytes name does not find a str key, a name ends at its first NUL",
        "str and bytes on both sides; empty names, NULs and what is no UTF-8 are ValueErrors",
        "the documented `dict[str, str]` fails there; a cut name finds another kernel",
        {
            "code_errors.str_value": 0,
            "code_errors.bytes_name": 0,
            "code_errors.nul": "ValueError",
        },
    ),
    Difference(
        "pickling and copying a `Kernel`",
        "TypeError",
        "travels with its image, and is loaded where it arrives; a copy is the kernel itself",
        "workers get the kernel that they shall run",
        {"kernel_travels.pickled": 0, "kernel_travels.copied": 0},
    ),
    Difference(
        "setting `kernel.attributes`",
        "none can be set",
        "those that the driver lets be set, per device; they are never cached",
        "dynamic shared memory and carveout are set by most tuned kernels",
        {"attributes.settable": None},
    ),
    Difference(
        "`LaunchConfig`",
        "fields can be assigned without a check; sizes are checked at the launch, or cut; not "
        "picklable",
        "immutable, checked when it is made, picklable; a NumPy integer is an integer",
        "an unchecked field corrupts the launch, and threads share configurations",
        {
            "config_errors.negative_shared": "ValueError",
            "config_errors.float_shared": "TypeError",
            "config_errors.numpy": [3, 1, 1],
            "config_errors.large": "OverflowError",
            "config_errors.assigned": "AttributeError",
            "config_errors.pickled": [2, 1, 1],
        },
    ),
    Difference(
        "number and size of arguments",
        "not checked: the driver reads beyond them, or takes half of a value",
        "TypeError or OverflowError naming kernel, argument and value",
        "a wrong call crashes or computes garbage there",
        {
            "launch_errors.surplus": "TypeError",
            "launch_arguments.wide_int": "OverflowError",
            "launch_arguments.double_in_word": "TypeError",
        },
    ),
    Difference(
        "kinds of arguments",
        "buffers, Python, NumPy and ctypes scalars",
        "also None (a null pointer), objects with `__index__`, `__cuda_array_interface__` or "
        "DLPack, `c_void_p`, structs by value, and addresses beyond 2**63",
        "tensors are passed as they are",
        {
            "launch_arguments.none": None,
            "launch_arguments.index": None,
            "launch_arguments.cuda_array": None,
            "launch_arguments.beyond": None,
            "launch_arguments.pointer": None,
        },
    ),
    Difference(
        "more dynamic shared memory than 48 KiB",
        "CUDA_ERROR_INVALID_VALUE",
        "opted in up to the device's limit; beyond it a ValueError with asked, limit and static",
        "every user has to opt in otherwise, through another library",
        {"launch_errors.opt_in": None, "launch_errors.shared": "ValueError"},
    ),
    Difference(
        "`set_current`",
        "needed in every thread before streams and memory are made",
        "not needed: what is made on a Device lives there, and the caller's context stays",
        "a library must not change its caller's context",
        {"no_context.stream": True},
    ),
    Difference(
        "`stream.wait`",
        "None is accepted and does nothing; any other object is a ValueError",
        "TypeError for both",
        "a forgotten event is an order that is missing",
        {"stream_order.nothing": "TypeError", "stream_order.number": "TypeError"},
    ),
    Difference(
        "classes of exceptions for bad numbers",
        "OverflowError for negative and too large sizes, a float cut to a size, ValueError for "
        "one as device, AssertionError for an unknown code type",
        "ValueError for a number out of range, TypeError for what is no integer",
        "one rule for all calls",
        {
            "buffer_errors.minus": "ValueError",
            "occupancy.negative": "ValueError",
            "occupancy.huge": "ValueError",
            "device.float": "TypeError",
            "pool_options.negative": "ValueError",
            "pool_errors.negative": "ValueError",
            "pool_errors.float": "TypeError",
            "pool_pinned.legacy_negative": "ValueError",
            "code_errors.bad_type": "ValueError",
        },
    ),
    Difference(
        "errors of compilers and linkers",
        "`NVRTCError` (a CUDAError), `nvJitLinkError`, `nvvmError`; RuntimeErrors and CUDAErrors "
        "for bad options; an architecture that nvJitLink can't read ends the process",
        "`CompileError`, a CUDAError, with `.log` and `.options`; TypeErrors and ValueErrors for "
        "bad options, when they are made",
        "one class for one kind of failure",
        {
            "program_errors.arch": "ValueError",
            "program_errors.macro": "TypeError",
            "program_errors.type_class": "TypeError",
            "program_ptx.broken": "CUDAError",
            "program_nvvm.broken": "CUDAError",
            "program_nvvm.not_for_it": "ValueError",
            "linker.undefined": "CUDAError",
            "linker_errors.broken": "CUDAError",
            "linker_errors.missing": "CUDAError CUDA_ERROR_FILE_NOT_FOUND",
        },
    ),
    Difference(
        "compiling and linking again",
        "a program with name expressions compiles once, a linker links once; an image given as "
        "bytearray can't be linked",
        "as often as you like, from any image",
        "nothing of a compiler is kept between calls",
        {
            "program_names.again": ["add<float>", "n::add<unsigned, 4>", "n::add<unsigned, 5>"],
            "linker_errors.bytearray": "cubin",
        },
    ),
    Difference(
        "what a linker drops or breaks at",
        "of code that is not relocatable nothing is linked, in silence; names that two inputs "
        "define give a broken cubin, or a crash",
        "ValueError; CompileError",
        "the code would be missing, or not load",
        {"linker_errors.whole": "ValueError"},
    ),
    Difference(
        "flags of `LinkerOptions`",
        "`-ftz=true`; a tuple of names is dropped; `time=False` is `-time`",
        "`-ftz=1`, each name, nothing",
        "as nvJitLink documents them: it refuses the word once it optimises LTO-IR",
        {
            **{
                f"linker_options.{name}{number}": ["-arch=sm_90", f"-{flag}={value}"]
                for name, flag in (
                    ("ftz", "ftz"),
                    ("prec_div", "prec-div"),
                    ("prec_sqrt", "prec-sqrt"),
                    ("fma", "fma"),
                )
                for number, value in (("", 1), ("1", 0))
            },
            "linker_options.tuple": ["-arch=sm_90", "-kernels-used=a", "-kernels-used=b"],
            "linker_options.time_off": ["-arch=sm_90"],
        },
    ),
    Difference(
        "`ParamInfo` and the occupancy's tuple",
        "named tuples with `_asdict` and `_replace`",
        "tuples with the same names, without these",
        "`collections` would take a third of the time that importing takes",
        {"program_modules.as_dict": "AttributeError"},
    ),
    Difference(
        "`attributes` of a memory resource",
        "one object, read only",
        "a new view at each read; the writable ones can be set",
        "thresholds and policies are there to be set",
        {"pool_attributes.same": False, "pool_attributes.settable": None},
    ),
    Difference(
        "`LegacyPinnedMemoryResource.device_id`",
        "RuntimeError",
        "-1, as for other pinned memory",
        "one rule for memory that is no device's",
        {"pool_pinned.legacy_device_id": -1},
    ),
    Difference(
        "resources and events for other processes",
        "a resource is known by its uuid once it was sent; an event is made by recording only",
        "known as soon as it is made; any event can be made so",
        "what is sent twice should not depend on the first time",
        {
            "pool_shared.known": True,
            "pool_shared.event": True,
            "pool_shared.descriptor_direct": "TypeError",
        },
    ),
    Difference(
        "`CUDAError`",
        "an Exception; some failures of the driver come as RuntimeErrors of another text",
        "a RuntimeError, with `.status`, `.name`, `.call`, `.subject` and `.log`; missing files "
        "are FileNotFoundErrors, exhausted memory is a MemoryError",
        "handlers written for either class work",
        {"event.unrecorded": "CUDAError CUDA_ERROR_INVALID_HANDLE"},
    ),
]


def expected(recorded: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the programs show with cudamod when they show that with cuda.core."""
    ours = {program: dict(values) for program, values in recorded.items()}
    for difference in DIFFERENCES:
        for key, value in difference.shown.items():
            program, name = key.split(".")
            if name in ours.get(program, {}):
                ours[program][name] = value
    return ours


def table() -> str:
    """The table of the documentation."""
    rows = [f"| {d.subject} | {d.theirs} | {d.ours} | {d.reason} |" for d in DIFFERENCES]
    return "\n".join(["| | cuda.core 1.2 | cudamod | why |", "|---|---|---|---|", *rows])


def with_table(page: str) -> str:
    """The page with the table between its marks."""
    return re.sub(
        r"(<!-- differences -->\n).*?(<!-- end -->)",
        lambda marks: f"{marks[1]}{table()}\n{marks[2]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
