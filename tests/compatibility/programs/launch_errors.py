"""Launching: what is refused."""

from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import attempt, empty, ptx, show

device = Device(0)
stream = device.create_stream()
one = LaunchConfig(grid=1, block=1)
code = ObjectCode.from_ptx(ptx(empty("k"), empty("p", "u64")))
kernel, taking = code.get_kernel("k"), code.get_kernel("p")
closed = device.create_stream()
closed.close()
buffer = device.allocate(8, stream=stream)
buffer.close()
show(
    no_stream=attempt(lambda: launch(None, one, kernel)),
    number=attempt(lambda: launch(5, one, kernel)),
    no_config=attempt(lambda: launch(stream, None, kernel)),
    dict_config=attempt(lambda: launch(stream, {"grid": 1, "block": 1}, kernel)),
    no_kernel=attempt(lambda: launch(stream, one, None)),
    closed_stream=attempt(lambda: launch(closed, one, kernel)),
    closed_buffer=attempt(lambda: launch(stream, one, taking, buffer)),
    block=attempt(lambda: launch(stream, LaunchConfig(grid=1, block=1025), kernel)),
    grid=attempt(lambda: launch(stream, LaunchConfig(grid=(1, 65536), block=1), kernel)),
    shared=attempt(
        lambda: launch(stream, LaunchConfig(grid=1, block=1, shmem_size=1 << 20), kernel)
    ),
    cooperative=attempt(
        lambda: launch(stream, LaunchConfig(grid=10**6, block=1024, is_cooperative=True), kernel)
    ),
    opt_in=attempt(
        lambda: launch(stream, LaunchConfig(grid=1, block=1, shmem_size=50_000), kernel)
    ),
    surplus=attempt(lambda: launch(stream, one, kernel, 1)),
)
