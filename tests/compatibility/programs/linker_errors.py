"""Linking: what is refused."""

from cuda.core import Linker, LinkerOptions, ObjectCode
from outcome import DATA, attempt, empty, ptx, show

code = ObjectCode.from_ptx(ptx(empty("k")))
options = LinkerOptions(arch="sm_75")
show(
    nothing=attempt(Linker),
    number=attempt(lambda: Linker(3)),
    options=attempt(lambda: Linker(code, options=5)),
    target=attempt(lambda: Linker(code, options=options).link("ltoir")),
    broken=attempt(lambda: Linker(ObjectCode.from_ptx(b"junk"), options=options).link("cubin")),
    whole=attempt(
        lambda: (
            Linker(
                ObjectCode.from_cubin(str(DATA / "h200" / "saxpy.sm90.cubin")),
                options=LinkerOptions(arch="sm_90"),
            )
            .link("cubin")
            .code[:4]
        )
    ),
    missing=attempt(
        lambda: Linker(ObjectCode.from_ptx("/not/here.ptx"), options=options).link("cubin")
    ),
    bytearray=attempt(
        lambda: str(
            Linker(ObjectCode.from_ptx(bytearray(code.code)), options=options)
            .link("cubin")
            .code_type
        )
    ),
)
