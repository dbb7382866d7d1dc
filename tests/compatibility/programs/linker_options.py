"""Every option's flag for nvJitLink."""

from cuda.core import LinkerOptions
from outcome import attempt, show

VALUES = {
    "max_register_count": [32],
    "time": [True],
    "verbose": [True, False],
    "link_time_optimization": [True, False],
    "ptx": [True, False],
    "optimization_level": [0, 3],
    "debug": [True, False],
    "lineinfo": [True, False],
    "ftz": [True, False],
    "prec_div": [True, False],
    "prec_sqrt": [True, False],
    "fma": [True, False],
    "kernels_used": ["a", ["a", "b"]],
    "variables_used": ["a", ["a", "b"]],
    "optimize_unused_variables": [True],
    "ptxas_options": ["-v", ["-v", "-O2"]],
    "split_compile": [0, 2],
    "split_compile_extended": [0, 2],
    "no_cache": [True],
}
for name, values in VALUES.items():
    for number, value in enumerate(values):
        options = LinkerOptions(arch="sm_90", **{name: value})
        show(**{f"{name}{number or ''}": attempt(lambda o=options: o.as_bytes())})
show(
    tuple=LinkerOptions(arch="sm_90", kernels_used=("a", "b")).as_bytes(),
    time_off=LinkerOptions(arch="sm_90", time=False).as_bytes(),
    name=[LinkerOptions().name, LinkerOptions(name="n").name],
    backend=attempt(lambda: LinkerOptions(arch="sm_90").as_bytes("driver")),
    unknown=attempt(lambda: LinkerOptions(nothing=1)),
    equal=LinkerOptions(arch="sm_90") == LinkerOptions(arch="sm_90"),
)
