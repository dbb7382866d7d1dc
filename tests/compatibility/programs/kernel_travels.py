"""Kernels: pickling and copying."""

import copy
import pickle

from cuda.core import ObjectCode
from outcome import attempt, empty, ptx, show

kernel = ObjectCode.from_ptx(ptx(empty("k"))).get_kernel("k")
show(
    pickled=attempt(lambda: pickle.loads(pickle.dumps(kernel)).num_arguments),
    copied=attempt(lambda: copy.copy(kernel).num_arguments),
)
