"""torch's tensors by torch's own C functions, after a proof; without one, by DLPack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SETUP = """
import sys
sys.path.insert(0, {tests!r})
from ptx import Stored
from torch_stand_in import Torch
from cudamod import Device
torch = Torch({library!r})
device = Device(0)
device.set_current()
stored = Stored(device.create_stream())
memory = device.allocate(64, stream=stored.stream)
stored.stream.sync()
address = memory.handle
def arrives(tensor, wanted):
    assert stored.one("u64", tensor) == wanted.to_bytes(8, "little")
"""

Run = Callable[[str], str]


@pytest.fixture(scope="module")
def library(cxx: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torch_stand_in import build

    return build(tmp_path_factory.mktemp("torch"), cxx)


@pytest.fixture
def run(run_python: Callable[..., str], library: Path) -> Run:
    setup = SETUP.format(tests=str(Path(__file__).parent), library=str(library))
    return lambda code: run_python(setup + code, CUDAMOD_EMULATOR_QUIET="1")


def test_the_first_is_compared_and_the_others_are_read(run: Run) -> None:
    run("""
import pytest
arrives(torch.tensor(address), address)
assert torch.read == 1 and torch.described > 0
torch.described = 0
arrives(torch.tensor(address + 8), address + 8)
class Parameter(torch.Tensor): pass
arrives(torch.tensor(address, of=Parameter), address)
assert (torch.read, torch.described) == (3, 0)
# Without an address it is empty, or has no memory.
arrives(torch.tensor(0, sizes=bytes([0])), 0)
for sizes in (b"", bytes([4])):
    with pytest.raises(TypeError, match=r"argument 2: .*no memory \\(a fake tensor"):
        stored.one("u64", torch.tensor(0, sizes=sizes))
assert torch.described == 3
torch.described = 0
# What the C functions can't tell is DLPack's: other devices and host memory, which it refuses.
for how in (dict(index=5), dict(index=77), dict(kind=0), dict(kind=14)):
    with pytest.raises((TypeError, ValueError), match="argument 2"):
        stored.one("u64", torch.tensor(id(torch) if "kind" in how else address, **how))
assert torch.described == 4
with pytest.raises(TypeError, match="argument 2"):
    stored.one("f32", torch.tensor(address))
arrives(torch.tensor(address), address)
""")


@pytest.mark.parametrize(
    "what",
    [
        "torch.lie = 8",  # DLPack tells another address
        "torch.Tensor._cdata = property(lambda self: id(self))",  # what is there is something else
        "torch.Tensor._cdata = property(lambda self: 1 // 0)",
        "torch.Tensor._cdata = 'no number'",
        "torch.Tensor._cdata = -1",
        "torch.Tensor = type('Other', (torch.Tensor,), {'__slots__': ()})",  # never a plain one
    ],
)
def test_without_the_proof_dlpack_is_asked(run: Run, what: str) -> None:
    run(f"""
{what}
for turn in range(3):
    torch.described = 0
    arrives(torch.tensor(address), address + torch.lie)
    assert torch.described >= 1
read = torch.read
arrives(torch.tensor(address), address + torch.lie)
assert torch.read == read
""")


def test_a_tensor_of_the_host_decides_nothing(run: Run) -> None:
    run("""
import pytest
with pytest.raises(TypeError, match="host memory"):
    stored.one("u64", torch.tensor(id(torch), kind=1 - 1))
arrives(torch.tensor(address), address)
torch.described = 0
arrives(torch.tensor(address), address)
assert torch.described == 0
""")
