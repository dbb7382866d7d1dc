"""Every option's flag."""

from cuda.core import ProgramOptions
from outcome import attempt, show

VALUES = {
    "relocatable_device_code": [True, False],
    "extensible_whole_program": [True],
    "debug": [True, False],
    "lineinfo": [True],
    "device_code_optimize": [True],
    "ptxas_options": ["-v", ["-v", "-O2"]],
    "max_register_count": [32],
    "ftz": [True, False],
    "prec_sqrt": [True, False],
    "prec_div": [True, False],
    "fma": [True, False],
    "use_fast_math": [True, False],
    "extra_device_vectorization": [True],
    "link_time_optimization": [True],
    "gen_opt_lto": [True],
    "define_macro": ["N", ("N", "V"), [("A", "1"), "B"]],
    "undefine_macro": ["N", ["A", "B"]],
    "include_path": ["/i", ["/i", "/j"]],
    "pre_include": ["a.h", ["a.h", "b.h"]],
    "no_source_include": [True],
    "std": ["c++17"],
    "builtin_move_forward": [True, False],
    "builtin_initializer_list": [True, False],
    "disable_warnings": [True],
    "restrict": [True],
    "device_as_default_execution_space": [True],
    "device_int128": [True],
    "device_float128": [True],
    "optimization_info": ["inline"],
    "no_display_error_number": [True],
    "diag_error": [1, [1, 2]],
    "diag_suppress": [1, [1, 2]],
    "diag_warn": [1, [1, 2]],
    "brief_diagnostics": [True, False],
    "time": ["-"],
    "split_compile": [2],
    "fdevice_syntax_only": [True],
    "minimal": [True],
    "no_cache": [True],
    "fdevice_time_trace": ["t.json"],
    "frandom_seed": ["7"],
    "ofast_compile": ["min"],
    "pch": [True],
    "create_pch": ["c.pch"],
    "use_pch": ["c.pch"],
    "pch_dir": ["/p"],
    "pch_verbose": [True, False],
    "pch_messages": [True, False],
    "instantiate_templates_in_pch": [True, False],
    "numba_debug": [True],
}
for name, values in VALUES.items():
    show(
        **{
            f"{name}{number or ''}": attempt(
                lambda name=name, value=value: ProgramOptions(
                    arch="sm_90", **{name: value}
                ).as_bytes("nvrtc")
            )
            for number, value in enumerate(values)
        }
    )
for name in ("debug", "device_code_optimize", "ftz", "prec_sqrt", "prec_div", "fma"):
    for value in (True, False):
        options = ProgramOptions(arch="sm_90", **{name: value})
        show(**{f"nvvm_{name}_{value}": attempt(lambda o=options: o.as_bytes("nvvm"))})
options = ProgramOptions(name="n", arch="sm_90a")
show(
    suffixed=options.as_bytes("NVRTC"),
    lto=attempt(lambda: options.as_bytes("nvvm", "ltoir")),
    nvvm=attempt(lambda: ProgramOptions(arch="sm_90").as_bytes("nvvm", "ptx")),
    backend=attempt(lambda: options.as_bytes("other")),
    name=[options.name, ProgramOptions().name],
    equal=[options == ProgramOptions(name="n", arch="sm_90a"), options == ProgramOptions()],
)
