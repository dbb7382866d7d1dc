"""Write every generated file."""

from __future__ import annotations

from pathlib import Path

from cffi_build import cffi_source, table_source
from cffi_build.declarations import TypeClosure
from cffi_build.functions import is_selected
from cffi_build.header import Header
from cffi_build.stubs import StubWriter

STUB_TEMPLATE = Path(__file__).with_name("driver_stub.pyi.in")


def generate(header: Header, out: Path) -> None:
    """Write everything that follows from the list and ``header`` into ``out``."""
    functions = [f for f in header.functions() if is_selected(f.name)]
    closure = TypeClosure(header, [f.exported for f in functions])
    out.mkdir(parents=True, exist_ok=True)
    (out / "driver_functions.h").write_text(table_source.function_list(functions))
    (out / "driver_facts.inc").write_text(table_source.function_facts(header, functions))
    (out / "driver_status_names.inc").write_text(table_source.status_names(header))
    (out / "driver_device_attributes.inc").write_text(table_source.device_attributes(header))
    stub = StubWriter(header, closure.enums()).text(functions, STUB_TEMPLATE.read_text())
    (out / "driver.pyi").write_text(stub)
    cdef = cffi_source.declarations(header, functions, closure)
    cffi_source.write(out / "cffi_module.c", cdef, functions)
