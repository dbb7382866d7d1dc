"""Object code: pickling, copying, comparing."""

import copy
import pickle

from cuda.core import ObjectCode
from outcome import empty, ptx, show

code = ObjectCode.from_ptx(ptx(empty("k")), name="n", symbol_mapping={"f": b"k"})
for how, twin in (
    ("pickled", pickle.loads(pickle.dumps(code))),
    ("copied", copy.copy(code)),
    ("deep", copy.deepcopy(code)),
):
    show(
        **{
            how: [twin.name, str(twin.code_type), twin.code == code.code],
            f"{how}_kernel": twin.get_kernel("f").num_arguments,
            f"{how}_equal": twin == code,
        }
    )
show(itself=code == code, other=code == 5, hash=hash(code) == hash(code))
