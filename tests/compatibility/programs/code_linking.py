"""Object code that is for linking alone."""

from cuda.core import ObjectCode
from outcome import DATA, attempt, show

for kind in ("ltoir", "object", "library"):
    make = getattr(ObjectCode, f"from_{kind}")
    code = make(b"not read", name="n", symbol_mapping={"a": b"b"})
    show(
        **{
            f"{kind}_kernel": attempt(lambda code=code: code.get_kernel("a")),
            f"{kind}_kept": [code.name, code.code, sorted(code.symbol_mapping)],
        }
    )
    path = str(DATA / "objects" / "parts.a")
    show(**{f"{kind}_path": make(path).code == path})
fatbin = ObjectCode.from_fatbin(str(DATA / "names" / "names.zstd.fatbin"))
show(
    fatbin=str(fatbin.code_type),
    kernel=fatbin.get_kernel("plain").num_arguments,
    missing=attempt(lambda: fatbin.get_kernel("nothing")),
    other=attempt(
        lambda: ObjectCode.from_cubin(str(DATA / "cubins" / "features.sm75.cubin")).get_kernel("k")
    )[:9],
)
