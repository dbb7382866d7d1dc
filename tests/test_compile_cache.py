"""The cache on disk: shared, bounded, and never a reason to fail."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import SAXPY, needs_nvrtc

from cudamod import CompileCache, Program, _nvrtc

KEY = "k" * 64


def entries(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if not path.name.startswith("."))


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path / "cache")


def test_what_was_put_is_there(cache: CompileCache) -> None:
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"payload")
    assert cache.put("other", b"")
    assert cache.get(KEY) == b"payload"
    assert cache.get("other") == b""
    assert cache.put(KEY, b"newer")
    assert cache.get(KEY) == b"newer"
    assert cache.content().entries == 2
    cache.clear()
    assert cache.get(KEY) is None
    assert cache.content() == (0, 0)


def test_only_the_owner_can_read_or_write(cache: CompileCache) -> None:
    cache.put(KEY, b"payload")
    directory = Path(str(cache.directory))
    assert directory.stat().st_mode & 0o777 == 0o700
    assert entries(directory)[0].stat().st_mode & 0o777 == 0o600


def test_keys_are_no_paths(cache: CompileCache) -> None:
    for key in ("", "../up", "a/b", ".hidden", "ä", "a\0b"):
        with pytest.raises(ValueError, match="a key must be"):
            cache.get(key)
        with pytest.raises(ValueError, match="a key must be"):
            cache.put(key, b"")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:20],
        lambda content: b"",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda content: b"\0" * len(content),
    ],
)
def test_damaged_entries_are_dropped(cache: CompileCache, damage: Callable[[bytes], bytes]) -> None:
    cache.put(KEY, b"payload")
    (path,) = entries(Path(str(cache.directory)))
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(KEY) is None
    assert not path.exists()


def test_an_entry_under_another_key_is_dropped(cache: CompileCache) -> None:
    cache.put(KEY, b"payload")
    (path,) = entries(Path(str(cache.directory)))
    path.rename(path.with_name("other"))
    assert cache.get("other") is None


def test_the_bound_holds_and_the_oldest_go_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, max_bytes=10_000)
    for number in range(9):
        assert cache.put(f"key{number}", bytes(900))
        os.utime(tmp_path / f"key{number}", (number, number))
    assert cache.get("key0") is not None  # used now
    for number in range(9, 12):
        cache.put(f"key{number}", bytes(900))
        assert cache.content().bytes <= 10_000
    there = {path.name for path in entries(tmp_path)}
    assert {"key0", "key9", "key10", "key11"} <= there
    assert not {"key1", "key2"} & there
    assert not cache.put("large", bytes(20_000))
    assert {path.name for path in entries(tmp_path)} == there
    assert not CompileCache(tmp_path, max_bytes=0).put(KEY, b"")


def test_what_was_never_finished_is_removed_in_time(cache: CompileCache) -> None:
    cache.put(KEY, b"payload")
    directory = Path(str(cache.directory))
    old, new = directory / ".new-old", directory / ".new-new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, time.time() - 7200))
    cache.put("other", b"payload")
    assert not old.exists()
    assert new.exists()
    assert cache.content().entries == 2


def test_a_folder_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for directory in (file, file / "below", Path("/proc/nothing"), Path("/dev/full")):
        cache = CompileCache(directory)
        assert not cache.put(KEY, b"payload")
        assert cache.get(KEY) is None
        assert cache.content() == (0, 0)
        cache.clear()


def test_a_read_only_folder_is_read(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put(KEY, b"payload")
    (tmp_path / "cache").chmod(0o500)
    try:
        assert cache.get(KEY) == b"payload"
        if os.geteuid() != 0:  # the superuser may write everywhere
            assert not cache.put("other", b"payload")
    finally:
        (tmp_path / "cache").chmod(0o700)


def test_a_full_disk_leaves_nothing_behind(
    cache: CompileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEY, b"payload")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.put("other", b"payload")
    monkeypatch.undo()
    assert os.listdir(str(cache.directory)) == [KEY]


def test_somebody_elses_folder_is_no_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDAMOD_CACHE_DIR", str(tmp_path))
    cache = CompileCache()
    assert cache.directory == str(tmp_path / "programs")
    assert cache.put(KEY, b"payload")
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path.stat().st_uid) + 1)
    assert cache.get(KEY) is None
    assert not cache.put(KEY, b"payload")
    assert CompileCache(tmp_path / "programs").get(KEY) == b"payload"  # asked for by name


@pytest.mark.parametrize(
    ("environment", "directory"),
    [
        ({"CUDAMOD_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a/programs"),
        ({"CUDAMOD_CACHE_DIR": "", "XDG_CACHE_HOME": "/b"}, "/b/cudamod/programs"),
        ({"CUDAMOD_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": "/h"}, "/h/.cache/cudamod"),
        ({"CUDAMOD_CACHE_DIR": None, "XDG_CACHE_HOME": "relative"}, "None"),
    ],
)
def test_where_it_is(
    environment: dict[str, str | None], directory: str, run_python: Callable[..., str]
) -> None:
    code = "from cudamod import CompileCache; print(CompileCache().directory)"
    assert run_python(code, **environment).startswith(directory)


def test_wrong_arguments(tmp_path: Path) -> None:
    for wrong in (True, 1.5, "1"):
        with pytest.raises(TypeError, match="max_bytes must be int"):
            CompileCache(tmp_path, max_bytes=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not be negative"):
        CompileCache(tmp_path, max_bytes=-1)
    for directory in ("", "a\0b"):
        with pytest.raises(ValueError, match="is no path"):
            CompileCache(directory)
    with pytest.raises(TypeError):
        CompileCache(3)  # type: ignore[arg-type]


def test_it_travels_to_other_processes(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, max_bytes=1000)
    copy = pickle.loads(pickle.dumps(cache))
    assert (copy.directory, copy.max_bytes) == (str(tmp_path), 1000)
    assert repr(copy) == repr(cache)


WRITER = """
import hashlib, os, sys
from cudamod import CompileCache
cache = CompileCache(sys.argv[1], max_bytes=300_000)
number, bad = 0, 0
while number < int(sys.argv[2]):
    key = f"key{number % 40}"
    found = cache.get(key)
    bad += found is not None and found != hashlib.sha512(key.encode()).digest() * 200
    cache.put(key, hashlib.sha512(key.encode()).digest() * 200)
    number += 1
print(bad)
"""


def start_writer(directory: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), str(count)],
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_eight_processes_at_once(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, 150) for _ in range(8)]
    assert [writer.communicate(timeout=120)[0] for writer in writers] == ["0\n"] * 8
    assert {writer.returncode for writer in writers} == {0}
    # Each saw the others' entries as they were at one moment; the next one sees them all.
    CompileCache(tmp_path, max_bytes=300_000).put("last", b"")
    assert 0 < CompileCache(tmp_path).content().bytes <= 300_000
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_processes_killed_in_the_middle(tmp_path: Path) -> None:
    for delay in (0.0, 0.01, 0.02, 0.03):
        writer = start_writer(tmp_path, 10**9)
        while not entries(tmp_path):
            time.sleep(0.005)
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    cache = CompileCache(tmp_path)
    names = [path.name for path in entries(tmp_path)]
    assert names
    assert None not in [cache.get(name) for name in names]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each program that the compiler really compiles."""
    compiled: list[str] = []
    compile_source = _nvrtc.compile_source

    def count(source: bytes, name: str, *arguments: object, **keywords: object) -> object:
        compiled.append(name)
        return compile_source(source, name, *arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(_nvrtc, "compile_source", count)
    return compiled


@needs_nvrtc
def test_a_program_is_compiled_once(cache: CompileCache, compilations: list[str]) -> None:
    source = "template <class T> __global__ void f(T* x) { int unused; *x = 1; }"
    program = Program(source, "c++", {"arch": "sm_90", "name": "once"})
    first = program.compile("ptx", ["f<int>"], cache=cache)
    again = Program(source, "c++", {"arch": "sm_90", "name": "once"})
    second = again.compile("ptx", ["f<int>"], cache=cache)
    assert compilations == ["once"]
    assert second == first
    assert second.symbol_mapping == {"f<int>": "_Z1fIiEvPT_"}
    program.compile("ptx", ["f<int>"], cache=False)
    assert compilations == ["once"] * 2


@needs_nvrtc
def test_a_damaged_program_is_compiled_again(cache: CompileCache, compilations: list[str]) -> None:
    program = Program(SAXPY, "c++", {"arch": "sm_90"})
    first = program.compile("cubin", cache=cache)
    (path,) = entries(Path(str(cache.directory)))
    path.write_bytes(path.read_bytes()[:-10])
    assert program.compile("cubin", cache=cache) == first
    assert program.compile("cubin", cache=cache) == first
    assert len(compilations) == 2


@needs_nvrtc
def test_the_users_cache_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: list[str]
) -> None:
    monkeypatch.setenv("CUDAMOD_CACHE_DIR", str(tmp_path))
    program = Program(SAXPY, "c++", {"arch": "sm_90"})
    for cache in (None, True, None):
        program.compile("ptx", cache=cache)
    assert len(compilations) == 1
    assert CompileCache().content().entries == 1


@needs_nvrtc
def test_without_a_place_for_it_programs_are_compiled(
    tmp_path: Path, compilations: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    program = Program(SAXPY, "c++", {"arch": "sm_90"})
    for _ in range(2):
        assert program.compile("ptx", cache=CompileCache(tmp_path / "file")).code
    assert len(compilations) == 2


@needs_nvrtc
def test_processes_compile_at_once_what_none_has_yet(tmp_path: Path) -> None:
    code = f"""
import hashlib
from cudamod import CompileCache, Program
cache = CompileCache({str(tmp_path)!r})
code = Program({SAXPY!r}, "c++", {{"arch": "sm_90"}}).compile("cubin", cache=cache).code
print(hashlib.sha256(code).hexdigest())
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=120)[0] for process in processes}) == 1
    assert {process.returncode for process in processes} == {0}
    assert len(entries(tmp_path)) == 1
