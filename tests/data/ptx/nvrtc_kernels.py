"""Compiles nvrtc_kernels.cu to PTX: `python nvrtc_kernels.py [folder of CUDA's headers]`."""

from __future__ import annotations

import sys
from pathlib import Path

from cuda.bindings import nvrtc

HERE = Path(__file__).parent


def main() -> None:
    include = sys.argv[1] if len(sys.argv) > 1 else "/usr/local/cuda/include"
    source = (HERE / "nvrtc_kernels.cu").read_bytes()
    options = [
        b"--gpu-architecture=compute_89",
        b"--std=c++17",
        b"-default-device",
        b"-I" + include.encode(),
        b"-I" + include.encode() + b"/cccl",
    ]
    _, program = nvrtc.nvrtcCreateProgram(source, b"nvrtc_kernels.cu", 0, [], [])
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        size = nvrtc.nvrtcGetProgramLogSize(program)[1]
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.decode())
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    lines = [line.rstrip() for line in text.decode().rstrip("\0").splitlines()]
    lines = [line for line in lines if line and not line.startswith("//")]
    # What the emulated driver and a driver of CUDA 13.0 understand.
    lines = [".version 9.0" if line.startswith(".version") else line for line in lines]
    (HERE / "nvrtc_kernels.ptx").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
