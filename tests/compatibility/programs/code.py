"""Object code and what it keeps."""

import os
from pathlib import Path

from cuda.core import ObjectCode
from outcome import DATA, attempt, empty, ptx, show

image = ptx(empty("k"))
code = ObjectCode.from_ptx(image, name="n", symbol_mapping={"f<int>": b"k"})
show(
    code=code.code == image,
    type=str(code.code_type),
    name=code.name,
    mapping=code.symbol_mapping,
    mapped=attempt(lambda: code.get_kernel("f<int>").num_arguments),
    bytes=attempt(lambda: code.get_kernel(b"k").num_arguments),
    handle=int(code.handle) != 0,
    module=int(code.get_module()) != 0,
    types=[
        str(make(b"x").code_type)
        for make in (
            ObjectCode.from_cubin,
            ObjectCode.from_ptx,
            ObjectCode.from_fatbin,
            ObjectCode.from_ltoir,
            ObjectCode.from_object,
            ObjectCode.from_library,
        )
    ],
)
path = DATA / "h200" / "saxpy.sm90.ptx"
show(
    path=ObjectCode.from_ptx(str(path)).get_kernel("saxpy").num_arguments,
    pathlike=ObjectCode.from_ptx(Path(path)).get_kernel("saxpy").num_arguments,
    path_code=os.path.basename(ObjectCode.from_ptx(str(path)).code),
    weak=attempt(lambda: setattr(code, "other", 1)),
    copied=code.symbol_mapping is code.symbol_mapping,
)
