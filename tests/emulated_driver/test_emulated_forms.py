"""Every opcode and form that compilers were seen to emit loads and runs.

What they mean is checked by the conformance suite of tests/native/ptx, and by the kernels that
are compared with NumPy.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator

import pytest
from emulated_driver_api import EmulatedDriver
from test_emulated_libraries import load

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
WORDS = ("u32", "s32", "u64", "s64")
FLOATS = ("f32", "f64")

#: What is in the 61 opcodes' table of reference forms, an opcode a line; the families below add
#: the rest of `ld`, `st`, `setp`, `cvt` and `atom`.
PLAIN = """
mov u32 f32 f64 b64 b32 u64 u16 pred
add s32 s64 f32 f64 u64 rn.f64 rn.f32 rz.f32 bf16x2 s16 rz.f64 cc.u32
sub s32 f32 s64 f64 s16 cc.u32
fma rn.f32 rn.f64 rm.f32 rn.f16 rn.f16x2 rz.f32
mul f32 wide.s32 lo.s32 f64 lo.s64 hi.u32 wide.u32 rn.f32 rn.f64 hi.s32 hi.u64 rp.f32
mul wide.u16 hi.s16 lo.u32
mad lo.s32 wide.u32 lo.cc.u32
madc hi.u32 hi.cc.u32 lo.cc.u32
addc u32 cc.u32
subc cc.u32 u32
selp f32 b32 b64 f64 u32 u16 u64
cvta to.global.u64 global.u64 local.u64 to.local.u64 to.shared.u64
shl b32 b64
shr u32 u64 s32 s64 u16
shf l.wrap.b32
and b32 pred b64 b16
or pred b32 b64
xor b32 b64
not b32 b64
neg f64 f32 s32 s64
abs f32 f64
min s32 u64 f64 u32
max s32 f32 f16x2 f64 u64
copysign f32 f64
ex2 approx.ftz.f32 approx.f32
lg2 approx.f32 approx.ftz.f32
sin approx.f32
cos approx.f32
rcp approx.ftz.f32 approx.ftz.f64 rn.f64 rn.f32
rsqrt approx.f32 approx.ftz.f32 approx.f64 approx.ftz.f64
sqrt rn.f32 rn.f64
div rn.f32 approx.f32 s64 u32 s32 rn.f64
rem u32 u64
bfi b64 b32
bfind shiftamt.u32
brev b32 b64
popc b32 b64
clz b64 b32
prmt b32
dp4a s32.s32
sad s32
"""
#: Whole instructions, one form each.
WHOLE = """
shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, 0xffffffff;
shfl.sync.down.b32 %r1, %r2, 1, 31, 0xffffffff;
shfl.sync.up.b32 %r1, %r2, 1, 0, 0xffffffff;
shfl.sync.idx.b32 %r1, %r2, 1, 31, 0xffffffff;
vote.sync.ballot.b32 %r1, %p1, 0xffffffff;
vote.sync.any.pred %p1, %p2, 0xffffffff;
vote.sync.all.pred %p1, %p2, 0xffffffff;
match.any.sync.b32 %r1, %r2, 0xffffffff;
activemask.b32 %r1;
redux.sync.add.s32 %r1, %r2, 0xffffffff;
bar.sync 0;
bar.warp.sync 0xffffffff;
bar.red.popc.u32 %r1, 0, %p1;
bar.red.or.pred %p1, 0, %p2;
bar.red.and.pred %p1, 0, %p2;
barrier.sync 0;
barrier.cluster.arrive;
barrier.cluster.wait;
membar.gl;
membar.cta;
membar.sys;
mapa.shared::cluster.u32 %r1, %shared, %r0;
nanosleep.u32 10;
bra NEXT;
NEXT: bra.uni LAST;
LAST: cp.async.cg.shared.global [%shared], [%memory], 16;
cp.async.commit_group;
cp.async.wait_group 0;
call function;
call.uni function;
@%never trap;
@%never ret;
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {A}, [%memory], %n16;
wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {B}, [%memory], %n16;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {C}, {A}, {B}, {C};
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%memory], {C}, %n16;
"""
SOURCES = {
    **dict.fromkeys(
        [
            "mov",
            "not",
            "neg",
            "abs",
            "ex2",
            "lg2",
            "sin",
            "cos",
            "rcp",
            "rsqrt",
            "sqrt",
            "brev",
            "popc",
            "clz",
            "bfind",
            "cvta",
        ],
        1,
    ),
    **dict.fromkeys(["fma", "mad", "madc", "selp", "bfi", "shf", "prmt", "dp4a", "sad"], 3),
}
KERNEL = """.version 8.0
.target sm_90
.address_size 64
.const .align 16 .b8 constant[64];
.func function() {{ ret; }}
.visible .entry k(.param .u64 memory, .param .align 16 .b8 values[64])
{{
.shared .align 16 .b8 shared[64];
.local .align 16 .b8 local[64];
.reg .pred %p<4>, %never;
.reg .b16 %h<8>;
.reg .b32 %r<8>, %shared, %n16, %a<8>, %b<8>;
.reg .b64 %d<8>, %memory;
.reg .f32 %f<8>, %c<8>;
.reg .f64 %g<8>;
ld.param.u64 %memory, [memory];
mov.u32 %shared, shared;
mov.u32 %n16, 16;
mov.u32 %r0, 0;
mov.f32 %c0, 0f00000000;
setp.ne.u32 %never, %r0, 0;
{body}
ret;
}}
"""
FIRST_LINE = KERNEL.split("{body}")[0].count("\n") + 1


def register(kind: str, number: int) -> str:
    if kind in FLOATS:
        return f"%{'f' if kind == 'f32' else 'g'}{number}"
    if kind == "pred":
        return f"%p{number % 4}"
    return {"8": "%h", "16": "%h", "32": "%r", "64": "%d"}[kind.lstrip("usbfx")[:2]] + str(number)


def size(kind: str) -> str:
    """The kind of the registers that hold values of this one."""
    return "b32" if kind in ("f16x2", "bf16x2") else "b16" if kind == "f16" else kind


def whole() -> Iterator[str]:
    for line in WHOLE.strip().splitlines():
        for fragment in "ABC":
            registers = ", ".join(f"%{fragment.lower()}{n}" for n in range(8))
            line = line.replace(f"{{{fragment}}}", f"{{{registers}}}")
        yield line


def plain() -> Iterator[str]:
    for line in PLAIN.split("\n")[1:-1]:
        opcode, *forms = line.split()
        for form in forms:
            last = size(form.split(".")[-1])
            count, kinds = SOURCES.get(opcode, 2), [last] * 4
            if "wide" in form:
                kinds = [
                    last[0] + str(2 * int(last[1:])),
                    last,
                    last,
                    last[0] + str(2 * int(last[1:])),
                ]
            if opcode in ("popc", "clz", "bfind"):
                kinds[0] = "u32"
            if opcode in ("shl", "shr"):
                kinds[2] = "u32"
            if opcode == "bfi":
                count, kinds = 4, [last, last, last, "u32", "u32"]
            if opcode == "selp":
                kinds[3] = "pred"
            operands = [register(kind, n + 1) for n, kind in enumerate(kinds[: count + 1])]
            yield f"{opcode}.{form} {', '.join(operands)};"


def comparisons() -> Iterator[str]:
    signed = ("eq", "ne", "lt", "le", "gt", "ge")
    floating = (*signed, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    for kind in (*INTEGERS, "b16", "b32", "b64", *FLOATS):
        names = floating if kind in FLOATS else signed[:2] if kind[0] == "b" else signed
        for name in names:
            yield f"setp.{name}.{kind} %p1, {register(kind, 1)}, {register(kind, 2)};"
            yield f"setp.{name}.and.{kind} %p1|%p2, {register(kind, 1)}, {register(kind, 2)}, %p3;"


def conversions() -> Iterator[str]:
    integers = ("u8", "s8", *INTEGERS)
    for to, from_ in itertools.product(integers, integers):
        if to != from_:
            wide = {"u8": "u32", "s8": "s32"}  # of the registers, which may be wider
            operands = register(wide.get(to, to), 1), register(wide.get(from_, from_), 2)
            yield f"cvt.{to}.{from_} {operands[0]}, {operands[1]};"
    for rounding, kind, integer in itertools.product(("n", "z", "m", "p"), FLOATS, INTEGERS):
        yield f"cvt.r{rounding}.{kind}.{integer} {register(kind, 1)}, {register(integer, 2)};"
        yield f"cvt.r{rounding}i.{integer}.{kind} {register(integer, 1)}, {register(kind, 2)};"
        yield f"cvt.r{rounding}i.{kind}.{kind} {register(kind, 1)}, {register(kind, 2)};"
        yield f"cvt.r{rounding}.f32.f64 %f1, %g2;"
    yield from ("cvt.f64.f32 %g1, %f2;", "cvt.f32.f16 %f1, %h2;", "cvt.rn.f16.f32 %h1, %f2;")
    yield from ("cvt.f64.f16 %g1, %h2;", "cvt.rn.f16.f64 %h1, %g2;", "cvt.sat.f32.f32 %f1, %f2;")


def accesses() -> Iterator[str]:
    spaces = {
        "global": "%memory",
        "shared": "shared",
        "local": "local",
        "const": "constant",
        "param": "values",
        "": "%memory",
    }
    kinds = ("u8", "s8", "b8", *INTEGERS, "b16", "b32", "b64", *FLOATS)
    for (space, place), kind, vector in itertools.product(spaces.items(), kinds, (1, 2, 4)):
        bits = int(kind[1:])
        if bits * vector > 128:
            continue
        held = kind.replace("8", "16") if bits == 8 else kind
        values = ", ".join(register(held, n + 1) for n in range(vector))
        values = f"{{{values}}}" if vector > 1 else values
        form = f"v{vector}.{kind}" if vector > 1 else kind
        at = f".{space}" if space else ""
        yield f"ld{at}.{form} {values}, [{place}+16];"
        if space == "global":
            yield f"ld.global.nc.{form} {values}, [{place}+16];"
        if space not in ("const", "param"):
            yield f"st{at}.{form} [{place}+16], {values};"
        if vector == 1 and bits > 8 and space not in ("const", "param", "local"):
            yield f"ld.volatile{at}.{form} {values}, [{place}+16];"
            yield f"st.volatile{at}.{form} [{place}+16], {values};"


def atomics() -> Iterator[str]:
    for space, place in (("global", "[%memory]"), ("shared", "[shared]")):
        forms = [("add", kind) for kind in ("u32", "s32", "u64", *FLOATS)]
        forms += itertools.product(("min", "max"), WORDS)
        forms += itertools.product(("and", "or", "xor", "exch", "cas"), ("b32", "b64"))
        forms += [("inc", "u32"), ("dec", "u32"), ("cas", "b16")]
        for name, kind in forms:
            values = ", ".join(register(kind, n) for n in range(2, 4 if name == "cas" else 3))
            yield f"atom.{space}.{name}.{kind} {register(kind, 1)}, {place}, {values};"
            if name not in ("exch", "cas"):
                yield f"red.{space}.{name}.{kind} {place}, {values};"


FAMILIES = {
    "whole": whole,
    "plain": plain,
    "setp": comparisons,
    "cvt": conversions,
    "ld and st": accesses,
    "atom and red": atomics,
}


def test_how_many() -> None:
    texts = [
        re.sub(r"^(@\S+|\w+:) ", "", line) for family in FAMILIES.values() for line in family()
    ]
    forms = {text.split()[0].rstrip(";") for text in texts}
    opcodes = {form.split(".")[0] for form in forms}
    assert len(opcodes - {"red"}) == 61
    assert len(forms) > 500


@pytest.mark.parametrize("family", FAMILIES)
def test_forms_load_and_run(current: EmulatedDriver, family: str) -> None:
    body = "\n".join(FAMILIES[family]())
    kernel = current.kernel(current.load(KERNEL.format(body=body).encode()), b"k")
    memory = current.upload(bytes(1024))
    arguments = [ctypes.c_uint64(memory.value or 0), (ctypes.c_byte * 64)()]
    assert current.launch(kernel, arguments, block=(32, 1, 1)) == 0
    current.call("cuCtxSynchronize")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_not_known_is_refused(current: EmulatedDriver, family: str) -> None:
    """A modifier that there is not, in each opcode: line, text and reason are in the log."""
    seen: set[str] = set()
    for line in FAMILIES[family]():
        text = re.sub(r"^(@\S+|\w+:) ", "", line)
        opcode = text.split()[0].rstrip(";").split(".")[0]
        if opcode in seen:
            continue
        seen.add(opcode)
        wrong = line.replace(opcode, f"{opcode}.unheard", 1)
        _, _, log = load(current, KERNEL.format(body=wrong).encode())
        assert log.startswith(b"ptxas application ptx input, line %d; error" % FIRST_LINE), log
        assert b"unheard" in log
