"""Kernels by the names that their source has: templates, overloads, anonymous namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudamod import CUDAError, Device, ObjectCode

NAMES = Path(__file__).parent / "data" / "names"

AXPY = "_ZN2ns4axpyI{}EEvT_PKS1_PS1_m"
FOUND = {
    "_Z4overPi": "_Z4overPi",
    "over(int*)": "_Z4overPi",
    "void over(int *)": "_Z4overPi",
    "::over(int*)": "_Z4overPi",
    "over(float*)": "_Z4overPf",
    "over(unsigned int, unsigned long long const*, int*)": "_Z4overjPKyPi",
    "over(unsigned, const long unsigned long *, int *)": "_Z4overjPKyPi",
    "ns::over": "_ZN2ns4overEPi",
    "::ns::over": "_ZN2ns4overEPi",
    "ns :: over ( int * )": "_ZN2ns4overEPi",
    "plain": "plain",
    "internal": "_Z8internalPi",
    "ns::axpy<float, 4>": AXPY.format("fLi4E"),
    "axpy<float,4>": AXPY.format("fLi4E"),
    "axpy< double , 8u >": AXPY.format("dLi8E"),
    "&ns::axpy<double, 8>": AXPY.format("dLi8E"),
    "void ns::axpy<double, 8>(double, double const*, double*, unsigned long)": AXPY.format("dLi8E"),
    "axpy(float, const float*, float*, unsigned long)": AXPY.format("fLi4E"),
    "scale": "_ZN2ns5scaleINS_4PairEEEvPT_",
    "scale<ns::Pair>": "_ZN2ns5scaleINS_4PairEEEvPT_",
    "ns::scale<ns::Pair>(ns::Pair*)": "_ZN2ns5scaleINS_4PairEEEvPT_",
}
HIDDEN = {
    "hidden": "hiddenEPi",
    "ns::hidden": "hiddenEPi",
    "ns::(anonymous namespace)::hidden(int*)": "hiddenEPi",
    "secret": "secretEPi",
    "(anonymous namespace)::secret": "secretEPi",
    "::secret": "secretEPi",
}


@pytest.fixture
def code(device: Device) -> ObjectCode:
    return ObjectCode.from_fatbin(NAMES / "names.zstd.fatbin")


@pytest.mark.parametrize("name", FOUND)
def test_a_spelling_of_one_kernel(code: ObjectCode, name: str) -> None:
    kernel = code.get_kernel(name)
    assert kernel.name == FOUND[name]
    assert code.get_kernel(name.encode()) is kernel is code.get_kernel(FOUND[name])


@pytest.mark.parametrize("name", HIDDEN)
def test_anonymous_namespaces_are_left_out(code: ObjectCode, name: str) -> None:
    assert code.get_kernel(name).name.endswith(HIDDEN[name])


def test_ptx_too(device: Device) -> None:
    code = ObjectCode.from_ptx(NAMES / "names.sm75.ptx")
    for name, symbol in FOUND.items():
        assert code.get_kernel(name).name == symbol


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("over", ["over(int*)", "over(float*)", "_Z4overjPKyPi"]),
        ("ns::axpy", ["axpy<float, 4>", "axpy<double, 4>", "axpy<double, 8>"]),
        ("axpy", [AXPY.format("fLi4E"), AXPY.format("dLi4E"), AXPY.format("dLi8E")]),
        (
            "axpy(double, double const*, double*, unsigned long)",
            ["axpy<double, 4>", "axpy<double, 8>"],
        ),
    ],
)
def test_an_ambiguous_name_lists_its_candidates(
    code: ObjectCode, name: str, candidates: list[str]
) -> None:
    for _ in range(2):
        with pytest.raises(CUDAError, match="is ambiguous: it may be ") as caught:
            code.get_kernel(name)
        assert (caught.value.status, caught.value.call) == (500, "cuLibraryGetKernel")
        for candidate in candidates:
            assert candidate in str(caught.value)
        # Its whole path is ::over, so ns::over is no candidate.
        assert "_ZN2ns4overEPi" not in str(caught.value)
        assert str(caught.value).count("(_Z") == len(candidates)


@pytest.mark.parametrize(
    "name",
    [
        "axpy<int, 4>",
        "ns::plain",
        "::axpy<float, 4>",
        "::hidden",
        "over()",
        "over(char*)",
        "other::over",
        "plain(int*)",
        "over<int>",
        "ver",
        "s::over",
        "::",
        "()",
        "<>",
        ">",
        ")",
        "over)",
        "over>",
        "(int*)",
        "a::",
        "&",
        "void",
        "💥<é>",
    ],
)
def test_no_kernel_is_guessed(code: ObjectCode, name: str) -> None:
    with pytest.raises(CUDAError) as caught:
        code.get_kernel(name)
    assert caught.value.status == 500
    assert "ambiguous" not in str(caught.value)
    assert "did you mean" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("axpi<float>", "ns::axpy<float, 4>"),
        ("axpy<float>", "ns::axpy<float, 4>"),
        ("plane", "'plain'"),
        ("ns::secret", "(anonymous namespace)::secret(int*)"),
    ],
)
def test_what_is_suggested(code: ObjectCode, name: str, suggested: str) -> None:
    with pytest.raises(CUDAError) as caught:
        code.get_kernel(name)
    assert suggested in str(caught.value).split("did you mean")[1]


def test_the_mapping_goes_first(device: Device) -> None:
    path = NAMES / "names.zstd.fatbin"
    mapped = ObjectCode.from_fatbin(path, symbol_mapping={"over": "plain", "x": "ns::over"})
    assert mapped.get_kernel("over").name == "plain"
    assert mapped.get_kernel("x").name == "_ZN2ns4overEPi"
    # A spelling means the image's kernel, whatever the mapping has under its symbol.
    crossed = ObjectCode.from_fatbin(path, symbol_mapping={"_ZN2ns4overEPi": "plain"})
    assert crossed.get_kernel("ns::over").name == "_ZN2ns4overEPi"
    assert crossed.get_kernel("_ZN2ns4overEPi").name == "plain"


def test_a_name_of_many_brackets_ends(code: ObjectCode) -> None:
    for name in (
        "(" * 100_000,
        "<" * 50_000 + ">" * 50_000,
        "a::" * 50_000 + "b",
        "long " * 50_000,
    ):
        with pytest.raises(CUDAError, match="NOT_FOUND") as caught:
            code.get_kernel(name)
        assert len(str(caught.value)) < 2000
