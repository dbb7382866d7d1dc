"""Kernels from raw handles."""

from cuda.core import Kernel, ObjectCode
from outcome import attempt, empty, ptx, show

code = ObjectCode.from_ptx(ptx(empty("k", "u32")))
kernel = code.get_kernel("k")
again = Kernel.from_handle(int(kernel.handle))
show(
    equal=again == kernel,
    count=again.num_arguments,
    with_code=Kernel.from_handle(int(kernel.handle), code) == kernel,
    text=attempt(lambda: Kernel.from_handle("1")),
    float=attempt(lambda: Kernel.from_handle(1.0)),
    none=attempt(lambda: Kernel.from_handle(None)),
    bytes=attempt(lambda: Kernel.from_handle(b"1")),
    negative=attempt(lambda: Kernel.from_handle(-1)),
    large=attempt(lambda: Kernel.from_handle(2**70)),
    mod=attempt(lambda: Kernel.from_handle(int(kernel.handle), "x")),
)
