"""``python -m cffi_build --include DIR --out DIR [--compiler COMMAND]``."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from cffi_build import cffi_source, table_source
from cffi_build.declarations import TypeClosure
from cffi_build.functions import is_selected
from cffi_build.header import Header
from cffi_build.stubs import StubWriter


def generate(header: Header, out: Path) -> None:
    """Write everything that follows from the list and ``header`` into ``out``."""
    functions = [f for f in header.functions() if is_selected(f.name)]
    closure = TypeClosure(header, [f.exported for f in functions])
    out.mkdir(parents=True, exist_ok=True)
    (out / "driver_functions.h").write_text(table_source.function_list(functions))
    (out / "driver_facts.inc").write_text(table_source.function_facts(header, functions))
    (out / "driver_status_names.inc").write_text(table_source.status_names(header))
    attributes = table_source.device_attributes(header)
    (out / "driver_device_attributes.inc").write_text(attributes)
    template = Path(__file__).with_name("driver_stub.pyi.in").read_text()
    stubs = StubWriter(header, closure.enum_typedefs())
    (out / "driver.pyi").write_text(stubs.text(functions, template))
    cdef = cffi_source.declarations(header, functions, closure)
    cffi_source.write(out / "cffi_module.c", cdef, functions)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cffi_build", description=__doc__)
    parser.add_argument("--include", type=Path, required=True, help="folder with cuda.h")
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    parser.add_argument("--compiler", default="cc", help="C compiler to preprocess with")
    options = parser.parse_args()
    generate(Header(options.include, shlex.split(options.compiler)), options.out)


main()
