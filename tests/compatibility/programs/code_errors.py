"""Object code: what is refused."""

from cuda.core import ObjectCode
from outcome import attempt, empty, ptx, show

code = ObjectCode.from_ptx(ptx(empty("k")))
show(
    direct=attempt(ObjectCode),
    missing=attempt(lambda: code.get_kernel("gone")),
    none=attempt(lambda: code.get_kernel(None)),
    number=attempt(lambda: code.get_kernel(3)),
    file=attempt(lambda: ObjectCode.from_cubin("/no/such/file").get_kernel("k")),
    name=attempt(lambda: ObjectCode.from_ptx(b"", name=None)),
    mapping=attempt(lambda: ObjectCode.from_ptx(b"", symbol_mapping=[1])),
    ltoir=attempt(lambda: ObjectCode.from_ltoir(ptx(empty("k"))).get_kernel("k")),
    garbage=attempt(lambda: ObjectCode.from_cubin(b"\xde\xad\xbe\xef" * 64).get_kernel("k")),
    image_of_int=attempt(lambda: ObjectCode.from_ptx(3).get_kernel("k")),
    str_value=attempt(
        lambda: (
            ObjectCode.from_ptx(ptx(empty("k")), symbol_mapping={"f": "k"})
            .get_kernel("f")
            .num_arguments
        )
    ),
    bytes_name=attempt(
        lambda: (
            ObjectCode.from_ptx(ptx(empty("k")), symbol_mapping={"f": b"k"})
            .get_kernel(b"f")
            .num_arguments
        )
    ),
    nul=attempt(lambda: code.get_kernel("k\0x").num_arguments),
    bad_type=attempt(lambda: ObjectCode._init(b"", "elf")),
)
