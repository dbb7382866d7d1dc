"""Launch configurations: what is refused."""

import pickle

import numpy as np
from cuda.core import LaunchConfig
from outcome import attempt, show

CASES = {
    "nothing": {},
    "no_block": {"grid": 1},
    "no_grid": {"block": 1},
    "float": {"grid": 1.0, "block": 1},
    "list": {"grid": [1], "block": 1},
    "four": {"grid": (1, 1, 1, 1), "block": 1},
    "float_inside": {"grid": (1.0,), "block": 1},
    "zero": {"grid": 0, "block": 1},
    "zero_inside": {"grid": (1, 0), "block": 1},
    "negative": {"grid": 1, "block": -1},
    "text": {"grid": "1", "block": 1},
    "unknown": {"grid": 1, "block": 1, "other": 1},
    "large_shared": {"grid": 1, "block": 1, "shmem_size": 2**31},
    "negative_shared": {"grid": 1, "block": 1, "shmem_size": -1},
    "float_shared": {"grid": 1, "block": 1, "shmem_size": 1.5},
    "numpy": {"grid": np.int64(3), "block": 1},
    "large": {"grid": 2**40, "block": 1},
}
for name, fields in CASES.items():
    show(**{name: attempt(lambda fields=fields: LaunchConfig(**fields).grid)})


def change():
    """Assign a field."""
    config = LaunchConfig(grid=1, block=1)
    config.grid = (0, 0, 0)
    return config.grid


show(
    assigned=attempt(change),
    pickled=attempt(lambda: pickle.loads(pickle.dumps(LaunchConfig(grid=2, block=1))).grid),
)
