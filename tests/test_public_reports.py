"""What users of other libraries ran into, and the tests that show how it is here.

Each row is a public report on another project; its tests are of the whole kind, not of one input.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent


class Report(NamedTuple):
    """Where it was reported, what went wrong, and the tests, as ``file::function``."""

    where: str
    what: str
    tests: tuple[str, ...]


REPORTS = {
    # Arguments.
    "B01": Report(
        "NVIDIA/cuda-python 2402",
        "an integer out of range is cut",
        ("arguments_integers::every_integer_in_range_arrives_and_none_beyond",),
    ),
    "B02": Report(
        "NVIDIA/cuda-python 1292",
        "True goes as eight bytes",
        (
            "arguments_integers::a_bool_is_one_or_zero_in_every_width",
            "arguments_integers::a_bool_parameter_takes_bools_and_the_numbers_0_and_1",
        ),
    ),
    "B03": Report(
        "cupy/cupy 6940, 8485",
        "half of a double for a float",
        (
            "arguments_cubin::a_float_needs_a_type_in_four_bytes",
            "arguments_floats::a_float_is_rounded_to_nearest_even",
        ),
    ),
    "B04": Report(
        "triton-lang/triton 6176, 7439",
        "a float of half precision is 0",
        (
            "arguments_floats::half_precision",
            "arguments_floats::a_finite_value_never_becomes_infinite",
        ),
    ),
    "B06": Report(
        "NVIDIA/numba-cuda 623",
        "sizes overflow in NumPy's width",
        ("launch_config::numpy_integers_are_integers", "occupancy::numpy_integers"),
    ),
    "B07": Report(
        "taichi-dev/taichi 6264",
        "2**63 is refused",
        ("arguments_integers::every_integer_in_range_arrives_and_none_beyond",),
    ),
    "B08": Report(
        "inducer/pycuda 56",
        "high addresses overflow",
        ("arguments_integers::addresses_are_unsigned", "arguments_memory::addresses"),
    ),
    "B09": Report(
        "triton-lang/triton 5454",
        "a C long is too small",
        ("arguments_integers::every_integer_in_range_arrives_and_none_beyond",),
    ),
    "B10": Report(
        "pytorch/ao 4016",
        "the error names no argument",
        ("arguments_integers::the_error_points_at_the_argument",),
    ),
    "B11": Report(
        "KernelTuner/kernel_tuner 176",
        "NumPy's bool is refused",
        ("arguments_integers::a_bool_parameter_takes_bools_and_the_numbers_0_and_1",),
    ),
    "B12": Report(
        "numba/numba 4140, pytorch/pytorch 148561",
        "empty arrays fail",
        ("arguments_memory::addresses",),
    ),
    "B14": Report(
        "cupy/cupy, function.pyx",
        "arrays of one element go by value",
        ("arguments_memory::numpy_arrays_are_refused",),
    ),
    "B15": Report(
        "cupy/cupy 4246, paiml/aprender 2060, sonots/cumo 518",
        "too few arguments crash, surplus ones are dropped",
        (
            "launch::a_wrong_number_of_arguments",
            "launch::too_few_arguments_of_its_own",
            "signature::a_wrong_number_of_arguments",
            "arguments_structs::a_struct_of_another_size_is_refused",
        ),
    ),
    "B16": Report(
        "numba/numba 6868",
        "tuples are flattened wrongly",
        ("signature::nested_arguments_are_refused",),
    ),
    "B20": Report(
        "cupy/cupy 2778, 9587, NVIDIA/cuda-python 150",
        "structs have another padding",
        (
            "arguments_structs::numpy_structs_have_the_layout_of_their_dtype",
            "arguments_structs::structures_and_unions",
            "arguments_structs::a_struct_of_another_size_is_refused",
        ),
    ),
    "B21": Report(
        "intel/intel-xpu-backend-for-triton 6624",
        "unknown types become integers",
        ("signature::unknown_names", "signature::unknown_elements"),
    ),
    "B22": Report(
        "NVIDIA/cuda-python 2041, 2357",
        "arguments are gone before their launch",
        (
            "prepared::arguments_stay_alive",
            "prepared::memory_outlives_a_closed_buffer",
            "sequence::kernels_and_arguments_are_kept",
        ),
    ),
    "B23": Report(
        "pytorch/pytorch 196969",
        "host memory reaches a kernel",
        ("arguments_memory::host_memory_is_refused", "arguments_memory::host_objects_are_refused"),
    ),
    "B25": Report(
        "NVIDIA/cuda-python 1336",
        "negative attributes come back unsigned",
        ("attributes::setting", "attributes::they_are_those_of_the_card"),
    ),
    # Launch configurations.
    "B26": Report(
        "NVIDIA/numba-cuda-mlir 143",
        "48 KiB beside static shared memory fail",
        ("launch_limits::dynamic_shared_memory_is_opted_in",),
    ),
    "B27": Report(
        "pytorch/pytorch 162328, cupy/cupy 2118",
        "more than 48 KiB fail without a word",
        (
            "launch_limits::dynamic_shared_memory_is_opted_in",
            "launch_limits::more_than_the_device_has",
            "several_devices::several_devices",
        ),
    ),
    "B28": Report(
        "JuliaGPU/CUDA.jl 3135",
        "other failures are blamed on shared memory",
        ("launch::the_error_names_the_limit",),
    ),
    "B29": Report(
        "triton-lang/triton 3299, 580, ml-explore/mlx 2267",
        "grids beyond the limit are an invalid argument",
        ("launch::the_error_names_the_limit", "launch::the_limits_themselves_pass"),
    ),
    "B30": Report(
        "cuCollections 75, cupy/cupy, function.pyx",
        "an empty grid runs one block",
        ("launch_config::nothing_below_one", "launch_config::what_is_no_dimension"),
    ),
    "B31": Report(
        "numba/numba 4468",
        "a launch without a configuration",
        ("kernel::a_kernel_is_not_called_without_a_configuration",),
    ),
    "B32": Report(
        "NVIDIA/cuda-python 867",
        "blocks or clusters",
        ("launch_limits::with_a_cluster_the_grid_counts_clusters",),
    ),
    "B34": Report(
        "cupy/cupy 8778",
        "large clusters fail without a hint",
        (
            "launch_clusters::clusters_beyond_the_portable_size",
            "launch_limits::clusters_that_are_too_large",
        ),
    ),
    "B36": Report(
        "cupy/cupy 3894",
        "a cooperative grid is made smaller",
        (
            "launch_limits::a_cooperative_grid_must_fit",
            "launch_clusters::a_cooperative_grid_of_too_many_clusters",
        ),
    ),
    "B37": Report(
        "NVIDIA/numba-cuda 261, NVIDIA/cuda-python 676",
        "cooperative grids that fit one device alone",
        ("launch_limits::a_cooperative_grid_must_fit",),
    ),
    "B38": Report(
        "NVIDIA/numba-cuda 744, NVIDIA/cuda-python 129",
        "functions and kernels are mixed up",
        (
            "kernel::a_function_is_no_kernel",
            "kernel::from_handle_checks_what_can_be_checked",
            "kernel::from_handle_takes_an_int_only",
        ),
    ),
    "B39": Report(
        "numba/numba 4589, NVIDIA/cuda-python 648",
        "a callable that fails inside of the driver",
        (
            "occupancy::exceptions_of_a_callable_come_out",
            "occupancy::a_callable_that_answers_no_size",
            "occupancy::functions_of_the_block_size",
        ),
    ),
    "B40": Report(
        "ROCm/rocm-libraries 8341",
        "clusters run in the default stream",
        (
            "launch_clusters::a_cluster_launch_runs_in_its_stream",
            "occupancy::cluster_queries_pass_the_stream",
        ),
    ),
    "B41": Report(
        "NVIDIA/warp, changelog",
        "failures are printed only",
        ("launch::the_error_names_the_limit", "launch::wrong_kinds"),
    ),
    "B42": Report(
        "NVIDIA/warp 564",
        "a block of another device is remembered",
        (
            "launcher::keywords_override_for_one_call",
            "launch_attributes::threads_share_a_config",
            "several_devices::several_devices",
        ),
    ),
    "B44": Report(
        "NVIDIA/warp, changelog",
        "more threads than 32 bits count",
        (
            "launch_config::products_beyond_32_bits_are_no_matter_here",
            "launch_clusters::products_of_dimensions_do_not_wrap",
        ),
    ),
    "B45": Report(
        "cupy/cupy 9751",
        "a block that is too large is an invalid argument",
        (
            "launch::the_error_names_the_limit",
            "launch_limits::a_cooperative_block_that_is_too_large",
        ),
    ),
    # Loading, names, errors.
    "B58": Report(
        "Netflix/vmaf 1397",
        "PTX without a NUL is read beyond its end",
        ("object_code::ptx_at_the_end_of_a_page", "load_options::ptx_that_ends_with_a_page"),
    ),
    "B59": Report(
        "NVIDIA/cuda-python 448, 755",
        "paths fail",
        (
            "object_code::files",
            "bad_images::a_missing_file",
            "bad_images::files_that_can_not_be_read",
            "bad_images::a_path_that_is_none",
            "bad_images::a_bad_file_is_named",
        ),
    ),
    "B61": Report(
        "NVIDIA/cuda-python 1565",
        "names in bytes fail",
        ("object_code::names_that_are_none", "object_code::a_kernel_by_name_is_the_same_object"),
    ),
    "B63": Report(
        "huggingface/candle 3884, kotekan 1607",
        "a missing name without its name",
        (
            "object_code::a_missing_kernel",
            "globals::a_missing_variable",
            "bad_images::an_image_without_code_for_the_device_says_what_it_has",
        ),
    ),
    "B66": Report(
        "NVIDIA/numba-cuda 163, googlecolab/colabtools 5081, Project-MONAI/MONAI 3541",
        "PTX newer than the driver",
        (
            "bad_images::a_bad_image",
            "bad_images::a_long_log_arrives",
            "newer_ptx::it_becomes_a_cubin_for_the_current_device",
            "newer_ptx::without_nvjitlink_the_error_says_what_helps",
        ),
    ),
    "B67": Report(
        "NVIDIA/cuda-python 194, 268",
        "loading fails later than load",
        ("bad_images::a_bad_image", "load_options::the_driver_is_told"),
    ),
    "B68": Report(
        "uccl-project/uccl 220",
        "a first launch waits for the device",
        (
            "kernel::a_resident_kernel_begins_beside_one_that_does_not_end",
            "kernel::load_makes_it_resident",
        ),
    ),
    "B70": Report(
        "sonots/cumo 174",
        "the host reads a variable of the device",
        (
            "globals::address_and_size",
            "globals::host_code_reads_and_writes_it",
            "globals::managed_variables",
            "globals::a_missing_variable",
        ),
    ),
    "B72": Report(
        "NVIDIA/cuda-python 526, 1671, cupy/cupy 4055, NVIDIA/numba-cuda 648",
        "pickles hold handles of another process",
        (
            "object_code::pickle_and_copy",
            "kernel::it_travels_with_its_image",
            "half_built::what_belongs_to_this_process_is_not_pickled",
            "worker_processes::code_travels",
        ),
    ),
    "B73": Report(
        "cupy/cupy 2df6b880",
        "failed loads leak, name expressions are missing in the cache's key",
        ("bad_images::nothing_stays_behind", "compile_key::every_input_is_in_the_key"),
    ),
}


@pytest.mark.parametrize("row", REPORTS)
def test_its_tests_are_there(row: str) -> None:
    assert REPORTS[row].tests
    for test in REPORTS[row].tests:
        file, function = test.split("::")
        text = (TESTS / f"test_{file}.py").read_text()
        assert re.search(rf"^def test_{function}\(", text, re.MULTILINE), test
