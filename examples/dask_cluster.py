"""Code compiled once, run by the workers of dask.distributed's local cluster."""

from __future__ import annotations

import sys
from pathlib import Path

from distributed import Client, LocalCluster

from cudamod import ObjectCode

sys.path.insert(0, str(Path(__file__).parent))
from worker_processes import SQUARE, run  # the same work


def main() -> None:
    """Send a kernel once to all workers, and work to each."""
    kernel = ObjectCode.from_ptx(SQUARE).get_kernel("square")
    # Dask starts its workers with spawn, as a driver needs it.
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.upload_file(str(Path(__file__).with_name("worker_processes.py")))
        (everywhere,) = client.scatter([kernel], broadcast=True)
        print(*client.gather(client.map(run, [everywhere] * 8, range(8))))


if __name__ == "__main__":
    main()
