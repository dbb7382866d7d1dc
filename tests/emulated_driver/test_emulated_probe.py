"""The emulated driver against the recorded H200: every difference is explained here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from emulated_driver_api import IMAGES, EmulatedDriver

#: Differences by the path in the record, and why they are right. An explanation that explains
#: nothing any more fails as well.
EXPLAINED = {
    r"errors/(launch ok|dyn smem 60000 after set|cluster grid 4)": (
        "these launch a cubin, and SASS is never executed: 801"
    ),
    r"images/mathd\.sm90\.ptx": "not in the tree: its text is NVIDIA's mathematics library",
    r"images/\w+\.sm90\.ptx/kernels/\w+/attr4": (
        "PTX does not say how many registers ptxas needs; an estimate"
    ),
    r"images/\w+\.sm90\.ptx/kernels/\w+/(occ/.*|potential|avail_dyn/.*)": (
        "occupancy follows from the registers"
    ),
}
#: What the estimate must not touch.
EXACT = re.compile(r"images/.*\.cubin/.*|images/.*/(attr(?!4$)\d+|params|param_end_error)")


def probe(path: Path, out: Path, fault: str) -> dict[str, Any]:
    script = Path(__file__).parent / "probe.py"
    subprocess.run(
        [sys.executable, str(script), str(out), str(path), fault],
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1"},
        check=True,
        timeout=120,
    )
    answers: dict[str, Any] = json.loads(out.read_text())
    return answers


def differences(card: Any, emulated: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    if isinstance(card, dict) and isinstance(emulated, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in card.keys() | emulated.keys():
            below = f"{path}/{key}" if path else key
            found |= differences(card.get(key), emulated.get(key), below)
        return found
    return {} if card == emulated else {path: (card, emulated)}


@pytest.fixture(scope="module")
def found(
    shared_driver: EmulatedDriver, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Any, Any]]:
    card = json.loads((IMAGES / "driver.json").read_text())
    del card["about"]
    folder = tmp_path_factory.mktemp("probe")
    runs = [
        probe(shared_driver.path, folder / fault, fault) for fault in ("trap", "null", "misaligned")
    ]
    for other in runs[1:]:
        runs[0]["errors"] |= other["errors"]
    return differences(card, runs[0])


def test_every_difference_is_explained(found: dict[str, tuple[Any, Any]]) -> None:
    unexplained = {
        path: values
        for path, values in found.items()
        if not any(re.fullmatch(pattern, path) for pattern in EXPLAINED)
    }
    assert unexplained == {}
    assert [path for path in found if EXACT.fullmatch(path)] == []


def test_every_explanation_is_needed(found: dict[str, tuple[Any, Any]]) -> None:
    idle = [
        pattern for pattern in EXPLAINED if not any(re.fullmatch(pattern, path) for path in found)
    ]
    assert idle == []
