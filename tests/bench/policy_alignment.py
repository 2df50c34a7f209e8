"""How write amplification depends on where commits lie between the levels: `python -m tests.bench.policy_alignment`.

The first stream of `tests.bench.policy` again, with files of 24 sizes spread evenly over one and a third levels on a
logarithmic scale, beside the optimum for as many small files. Whoever moves the levels helps some sizes and hurts
others; this is where it shows whether the mean gets better.
"""

import argparse
import sys

from rich.console import Console

from decider.whatif.simulator import replay_lakewright
from decider.whatif.trace import CommitTrace
from shared.table import Commit, DataFile
from tests.bench.offline_optimum import equal_files
from tests.bench.policy import POLICY
from tests.bench.policy_streams import MINUTE_MS, WHOLE

SIZES = tuple(int(0.55e6 * 16 ** (step / 24)) for step in range(24))
"""File sizes in bytes, from 0.55 to 7.8 MB."""

OUTPUTS = 5
"""Length of each stream, in full outputs."""


def ratio(size_bytes: int, lag_commits: int) -> float:
    """Return our write amplification over the optimum, for one file of this size a commit."""
    count = -(-POLICY.target_bytes // size_bytes)
    commits = tuple(
        Commit(n, n * MINUTE_MS, "WRITE", (DataFile(f"f{n:06d}", size_bytes, WHOLE),)) for n in range(OUTPUTS * count)
    )
    ours = replay_lakewright(CommitTrace((), commits), POLICY, lag_commits=lag_commits)
    return ours.wa * count / equal_files(count, ours.small_max)


def main() -> int:
    """Print the ratio for each size and lag."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lags", type=int, nargs="*", default=[0, 1, 2])
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    for lag_commits in parser.parse_args().lags:
        found = [ratio(size, lag_commits) for size in SIZES]
        console.print(f"lag {lag_commits}: mean {sum(found) / len(found):.3f}, worst {max(found):.3f} x the optimum")
        console.print(
            "  " + ", ".join(f"{size / 1e6:.2g} MB {one:.2f}" for size, one in zip(SIZES, found, strict=True))
        )
        exact = ", ".join(f"{size:,} B {ratio(size, lag_commits):.3f}" for size in (1_000_000, 1 << 20))
        console.print(f"  {exact}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
