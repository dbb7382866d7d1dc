"""The one list of driver functions.

A family is a prefix: ``cuStream`` selects every function of the header whose name goes on with a
capital letter or a digit (so ``cuGraph`` does not select ``cuGraphicsMapResources``). A name
selects itself. The driver table, the CFFI declarations, ``cudamod.driver``, its stubs and the
minimum driver versions all follow from these two lists.
"""

FAMILIES = (
    "cuCoredump",
    "cuCtx",
    "cuDevResource",
    "cuDevSmResource",
    "cuDevice",
    "cuEvent",
    "cuFunc",
    "cuGraph",
    "cuGreenCtx",
    "cuIpc",
    "cuKernel",
    "cuLaunch",
    "cuLibrary",
    "cuLink",
    "cuLogs",
    "cuMem",
    "cuMemcpy",
    "cuMemset",
    "cuModule",
    "cuMulticast",
    "cuOccupancy",
    "cuPointer",
    "cuStream",
    "cuTensorMap",
    "cuUserObject",
)

NAMES = (
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetProcAddress",
    "cuInit",
    "cuThreadExchangeStreamCaptureMode",
)


def is_selected(name: str) -> bool:
    """Whether the list selects the function that the header calls ``name``."""
    return name in NAMES or any(
        name.startswith(family) and not name[len(family) : len(family) + 1].islower()
        for family in FAMILIES
    )
