"""PTX texts for tests, and kernels that store their arguments for a test to read the bits back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cudamod import Buffer, Kernel, LaunchConfig, ObjectCode, Stream

HEADER = ".version 8.1\n.target sm_75\n.address_size 64\n"
CLUSTER_HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
ONE = LaunchConfig(grid=1, block=1)
GUARD = 0xA5

_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


def size_of(parameter: str) -> int:
    """Bytes of a parameter: ``u32``, ``f64``, ``b16`` or ``bytes[N]``."""
    if parameter.startswith("bytes["):
        return int(parameter[6:-1])
    match = re.fullmatch(r"[subf](8|16|32|64)", parameter)
    assert match, parameter
    return _SIZES[match[1]]


def declaration(parameter: str, name: str) -> str:
    """A parameter of an entry. A struct (``bytes[N]``) is aligned to 8 bytes."""
    if parameter.startswith("bytes["):
        return f".param .align 8 .b8 {name}[{size_of(parameter)}]"
    return f".param .{parameter} {name}"


def empty(*names: str, parameters: Sequence[str] = (), header: str = HEADER) -> bytes:
    """Kernels that do nothing."""
    declared = ", ".join(declaration(p, f"p{i}") for i, p in enumerate(parameters))
    return (
        header + "".join(f".visible .entry {n}({declared}) {{ ret; }}\n" for n in names)
    ).encode()


def _copy(index: int, size: int, offset: int, *, struct: bool) -> str:
    """Instructions that store a parameter at ``offset`` from ``%out``."""
    word, register = ("u64", "%word") if struct and offset % 8 == 0 else ("u8", "%byte")
    step = 8 if word == "u64" else 1
    if size > 512:  # a loop, since assembling ten thousand lines takes a minute
        whole = size // step * step
        return f"""
.reg .b64 %from{index}, %to{index}, %end{index};
.reg .pred %more{index};
mov.b64 %from{index}, p{index};
add.u64 %to{index}, %out, {offset};
add.u64 %end{index}, %to{index}, {whole};
copy{index}:
ld.param.{word} {register}, [%from{index}];
st.global.{word} [%to{index}], {register};
add.u64 %from{index}, %from{index}, {step};
add.u64 %to{index}, %to{index}, {step};
setp.lo.u64 %more{index}, %to{index}, %end{index};
@%more{index} bra copy{index};
""" + "".join(
            f"ld.param.u8 %byte, [p{index}+{at}];\nst.global.u8 [%out+{offset + at}], %byte;\n"
            for at in range(whole, size)
        )
    words = size // 8 if word == "u64" else 0
    parts = [("u64", "%word", 8 * at) for at in range(words)]
    parts += [("u8", "%byte", at) for at in range(8 * words, size)]
    return "".join(
        f"ld.param.{kind} {name}, [p{index}+{at}];\n"
        f"st.global.{kind} [%out+{offset + at}], {name};\n"
        for kind, name, at in parts
    )


def storing(parameters: Sequence[str], name: str = "store") -> bytes:
    """A kernel that copies its parameters, but for the first, to where the first points to."""
    text = [HEADER, f".visible .entry {name}(.param .u64 out"]
    text += [f", {declaration(p, f'p{i}')}" for i, p in enumerate(parameters)]
    text.append(")\n{\n.reg .b64 %out, %word;\n.reg .b16 %byte;\nld.param.u64 %out, [out];\n")
    offset = 0
    for i, parameter in enumerate(parameters):
        size = size_of(parameter)
        text.append(_copy(i, size, offset, struct=parameter.startswith("bytes[")))
        offset += size
    return "".join([*text, "ret;\n}\n"]).encode()


class Stored:
    """Launches kernels and answers the bytes that each of their parameters had on the device."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._kernels: dict[tuple[str, ...], Kernel] = {}

    def kernel(self, *parameters: str, name: str = "store") -> Kernel:
        """The kernel; its first parameter is the address to store to."""
        key = (name, *parameters)
        if key not in self._kernels:
            code = ObjectCode.from_ptx(storing(parameters, name))
            self._kernels[key] = code.get_kernel(name)
        return self._kernels[key]

    def __call__(
        self,
        parameters: Sequence[str],
        *values: Any,
        signature: Any = None,
        name: str = "store",
    ) -> list[bytes]:
        """What arrived of ``values``. A signature tells the types of all but the first one."""
        kernel = self.kernel(*parameters, name=name)
        sizes = [size_of(parameter) for parameter in parameters]
        out = self.stream.device.allocate(sum(sizes) + 8, stream=self.stream)
        out.fill(GUARD, stream=self.stream)
        if signature is not None:
            signature = ["ptr", *signature]
        kernel.bind(ONE, self.stream, signature=signature)(out, *values)
        data = read(out, self.stream)
        assert data[sum(sizes) :] == bytes([GUARD]) * 8
        parts, at = [], 0
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        return parts

    def one(self, parameter: str, value: Any, *, signature: Any = None) -> bytes:
        """What arrived of one value between two parameters that must stay what they are."""
        if signature is not None:
            signature = ["u8", signature, "u8"]
        before, stored, after = self(
            ["u8", parameter, "u8"], 0x5A, value, 0xC3, signature=signature
        )
        assert (before, after) == (b"\x5a", b"\xc3")
        return stored


def read(buffer: Buffer, stream: Stream) -> bytes:
    """The bytes of a buffer once the stream has run."""
    data = bytearray(buffer.size)
    buffer.copy_to(data, stream=stream)
    stream.sync()
    return bytes(data)


def stepping(name: str = "step") -> bytes:
    """A kernel ``(out, factor, addend)``: ``*out = *out * factor + addend``, in 32 bits.

    Calls of it don't commute, so that a result tells their order.
    """
    text = f"""{HEADER}
.visible .entry {name}(.param .u64 out, .param .u32 factor, .param .u32 addend)
{{
    .reg .b64 %out;
    .reg .b32 %factor, %addend, %value;
    ld.param.u64 %out, [out];
    ld.param.u32 %factor, [factor];
    ld.param.u32 %addend, [addend];
    ld.global.u32 %value, [%out];
    mad.lo.u32 %value, %value, %factor, %addend;
    st.global.u32 [%out], %value;
    ret;
}}
"""
    return text.encode()
