"""Kernels that Triton compiles to the PTX beside this file: `python triton_kernels.py`."""

from __future__ import annotations

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent


@triton.jit
def triton_add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def triton_softmax(x, out, columns, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, weights / tl.sum(weights, axis=0), inside)


@triton.jit
def triton_layernorm(x, weight, bias, out, columns, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centered = tl.where(inside, values - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / columns
    scaled = centered / tl.sqrt(variance + 1e-5)
    result = scaled * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, result, inside)


@triton.jit
def triton_matmul(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    rows = tl.program_id(0) * bm + tl.arange(0, bm)
    columns = tl.program_id(1) * bn + tl.arange(0, bn)
    total = tl.zeros((bm, bn), dtype=tl.float32)
    for start in range(0, k, bk):
        depth = start + tl.arange(0, bk)
        left = tl.load(a + rows[:, None] * k + depth[None, :])
        right = tl.load(b + depth[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def triton_scan(x, out, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 0, _plus))


@triton.jit
def triton_histogram(x, out, n, block: tl.constexpr, bins: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    values = tl.load(x + at)
    tl.atomic_add(out + tl.arange(0, bins), tl.histogram(values, bins))


@triton.jit
def triton_sort(x, out, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def triton_transpose(x, out, rows: tl.constexpr, columns: tl.constexpr):
    row = tl.arange(0, rows)
    column = tl.arange(0, columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :])
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(tile))


@triton.jit
def triton_fp8(x, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    narrow = tl.load(x + at).to(tl.float8e4nv)
    tl.store(out + at, narrow.to(tl.float32))


@triton.jit
def triton_atomic_max(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.atomic_max(out, tl.max(tl.load(x + at, inside, other=-(2**31)), axis=0))


@triton.jit
def triton_attention(q, k, v, out, scale, size: tl.constexpr, width: tl.constexpr):
    row = tl.arange(0, size)
    column = tl.arange(0, width)
    at = row[:, None] * width + column[None, :]
    scores = tl.dot(tl.load(q + at), tl.trans(tl.load(k + at))) * scale
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    weights = weights / tl.sum(weights, axis=1)[:, None]
    tl.store(out + at, tl.dot(weights.to(tl.float16), tl.load(v + at)))


@triton.jit
def triton_bf16_sum(x, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.atomic_add(out + tl.arange(0, block), tl.load(x + at))


# name: (kernel, types of the arguments, constants, capability)
MATMUL = ({"bm": 32, "bn": 32, "bk": 32}, "i32", "i32", "i32")
KERNELS = {
    "triton_add": (triton_add, ["*fp32"] * 3 + ["i32"], {"block": 256}, 80),
    "triton_softmax": (triton_softmax, ["*fp32"] * 2 + ["i32"], {"block": 256}, 80),
    "triton_layernorm": (triton_layernorm, ["*fp32"] * 4 + ["i32"], {"block": 256}, 80),
    "triton_matmul_f16": (
        triton_matmul,
        ["*fp16", "*fp16", "*fp32", *MATMUL[1:]],
        MATMUL[0],
        80,
    ),
    "triton_matmul_bf16": (
        triton_matmul,
        ["*bf16", "*bf16", "*fp32", *MATMUL[1:]],
        MATMUL[0],
        80,
    ),
    "triton_matmul_tf32": (
        triton_matmul,
        ["*fp32", "*fp32", "*fp32", *MATMUL[1:]],
        MATMUL[0],
        80,
    ),
    "triton_scan": (triton_scan, ["*fp32"] * 2, {"block": 512}, 80),
    "triton_histogram": (
        triton_histogram,
        ["*i32", "*i32", "i32"],
        {"block": 256, "bins": 64},
        80,
    ),
    "triton_sort": (triton_sort, ["*i32"] * 2, {"block": 256}, 80),
    "triton_transpose": (triton_transpose, ["*fp16"] * 2, {"rows": 32, "columns": 64}, 80),
    "triton_fp8": (triton_fp8, ["*fp32"] * 2, {"block": 256}, 89),
    "triton_atomic_max": (triton_atomic_max, ["*i32", "*i32", "i32"], {"block": 256}, 80),
    "triton_attention": (
        triton_attention,
        ["*fp16", "*fp16", "*fp16", "*fp32", "fp32"],
        {"size": 32, "width": 32},
        80,
    ),
    "triton_bf16_sum": (triton_bf16_sum, ["*bf16"] * 2, {"block": 128}, 90),
}


def main() -> None:
    for name, (kernel, types, constants, capability) in KERNELS.items():
        signature = dict(zip(kernel.arg_names, types, strict=False))
        signature.update(dict.fromkeys(constants, "constexpr"))
        source = ASTSource(kernel, signature, constexprs=constants)
        options = {"num_warps": 4, "ptx_version": 88}
        compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
        text = compiled.asm["ptx"]
        text = text[: text.find("\n\t.section")] if "\n\t.section" in text else text
        lines = [
            line for line in text.splitlines() if not line.strip().startswith((".file", ".loc"))
        ]
        (HERE / f"{name}.ptx").write_text("\n".join(lines).rstrip() + "\n")
        print(name, compiled.metadata.shared, "bytes of shared memory", len(text))


if __name__ == "__main__":
    main()
