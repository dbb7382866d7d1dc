"""Attributes of kernels."""

from cuda.core import Device, ObjectCode
from outcome import DATA, attempt, show

NAMES = [
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
    "cluster_size_must_be_set",
    "required_cluster_width",
    "required_cluster_height",
    "required_cluster_depth",
    "non_portable_cluster_size_allowed",
    "cluster_scheduling_policy_preference",
]
device = Device(0)
if device.arch == "90":
    for image in ("matmul_tiled", "reduce_shared", "localarr"):
        code = ObjectCode.from_cubin(str(DATA / "h200" / f"{image}.sm90.cubin"))
        attributes = code.get_kernel(image).attributes
        show(**{image: [getattr(attributes, name) for name in NAMES]})
code = ObjectCode.from_ptx(str(DATA / "h200" / "saxpy.sm90.ptx"))
attributes = code.get_kernel("saxpy").attributes
show(
    by_number=attributes[0].max_threads_per_block,
    by_device=attributes[device].max_threads_per_block,
    negative=attempt(lambda: attributes[-1].num_regs),
    beyond=attempt(lambda: attributes[1000].num_regs),
    text=attempt(lambda: attributes["0"].num_regs),
    direct=attempt(type(attributes)),
    read_only=attempt(lambda: setattr(attributes, "num_regs", 1)),
    settable=attempt(lambda: setattr(attributes, "preferred_shared_memory_carveout", 50)),
)
