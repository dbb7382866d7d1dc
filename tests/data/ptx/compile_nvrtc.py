"""Compiles nvrtc_*.cu to PTX: `python compile_nvrtc.py [folder of CUDA's headers [name]]`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from cuda.bindings import nvrtc

HERE = Path(__file__).parent


ARCHITECTURES = {"nvrtc_kernels": 89, "nvrtc_programs": 80, "nvrtc_clusters": 90}


def compiled(name: str, include: str) -> str:
    source = (HERE / f"{name}.cu").read_bytes()
    options = [
        f"--gpu-architecture=compute_{ARCHITECTURES[name]}".encode(),
        b"--std=c++17",
        b"-default-device",
        b"--device-int128",
        b"-I" + include.encode(),
        b"-I" + include.encode() + b"/cccl",
    ]
    _, program = nvrtc.nvrtcCreateProgram(source, f"{name}.cu".encode(), 0, [], [])
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
    # Variables of headers that nothing uses.
    used = Counter(re.findall(r"[\w$]+", "\n".join(lines)))
    lines = [
        line
        for line in lines
        if not (declared := re.match(r"\.global .*\b(_ZN4cuda\w+)", line)) or used[declared[1]] > 1
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    include = sys.argv[1] if len(sys.argv) > 1 else "/usr/local/cuda/include"
    for name in sys.argv[2:] or ARCHITECTURES:
        (HERE / f"{name}.ptx").write_text(compiled(name, include))


if __name__ == "__main__":
    main()
