"""A thread that has no current context."""

import threading

from cuda.core import Device, ObjectCode
from outcome import attempt, empty, ptx, show

code = ObjectCode.from_ptx(ptx(empty("k"), empty("other")))


def work():
    """Without a current context."""
    show(
        kernel=attempt(lambda: code.get_kernel("k") is not None),
        attributes=attempt(lambda: code.get_kernel("k").attributes.max_threads_per_block),
        count=attempt(lambda: code.get_kernel("k").num_arguments),
        module=attempt(code.get_module),
        device=attempt(lambda: Device().device_id),
        stream=attempt(lambda: Device(0).create_stream() is not None),
    )
    Device(0).set_current()
    show(current=attempt(lambda: code.get_kernel("other").num_arguments))


thread = threading.Thread(target=work)
thread.start()
thread.join()
