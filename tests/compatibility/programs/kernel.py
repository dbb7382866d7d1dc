"""Kernels: parameters and identity."""

from cuda.core import Kernel, ObjectCode
from outcome import attempt, empty, ptx, show

code = ObjectCode.from_ptx(ptx(empty("k", "u8", "u64", "u16", "f32"), empty("other")))
kernel = code.get_kernel("k")
show(
    count=kernel.num_arguments,
    info=[[item.offset, item.size] for item in kernel.arguments_info],
    none=code.get_kernel("other").arguments_info,
    equal=code.get_kernel("k") == kernel,
    hashed=len({kernel, code.get_kernel("k"), code.get_kernel("other")}),
    different=kernel == code.get_kernel("other"),
    number=kernel == int(kernel.handle),
    direct=attempt(Kernel),
    views=[kernel.attributes is kernel.attributes, kernel.occupancy is kernel.occupancy],
)
