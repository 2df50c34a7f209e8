"""What-if on any history: a recommendation follows from its figures, and the histogram holds every file."""

import math
import re
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from decider.api.routes.partitions import layout_view
from decider.whatif.baselines import PEERS
from decider.whatif.comparison import CostModel, recommend
from decider.whatif.simulator import replay_lakewright, replay_peer, replay_untouched
from decider.whatif.trace import CommitTrace
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import GIB, KIB, MIB, Policy
from shared.table import Commit, DataFile, RemovedFile
from tests.support.examples import examples

POLICY = Policy(target_bytes=64 * MIB)
RULES = {rule.name: rule for rule in PEERS}


CLAIMS = {
    "Fewer files and less rewriting": (-1, -1),
    "Fewer files are worth more rewriting": (-1, 1),
    "Fewer files": (-1, 0),
    "Less rewriting is worth more files": (1, -1),
    "Less rewriting": (0, -1),
}
CHANGE = re.compile(
    r"(?P<claim>[A-Z][a-z ]+): (?P<files>[\d.,e+-]+) files? instead of (?P<before>[\d.,e+-]+), .* commit, "
    r"and (?P<bytes>[\d.,]+ \w+) rewritten instead of (?P<bytes_before>[\d.,]+ \w+)\."
)


def figure(text: str) -> float:
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * {"": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}[unit]


@st.composite
def histories(draw: st.DrawFn) -> CommitTrace:
    size = draw(st.integers(KIB, 100 * MIB))
    files, gap_ms = draw(st.integers(1, 12)), draw(st.sampled_from([1, 60, 3_600])) * 1_000
    sizes = st.lists(st.integers(size // 3 + 1, size * 2), min_size=files, max_size=files)
    commits = draw(st.lists(sizes, min_size=1, max_size=12))
    return CommitTrace(
        (),
        tuple(
            Commit(n, n * gap_ms, "WRITE", tuple(DataFile(f"f{n}-{i}", one, WHOLE_TABLE) for i, one in enumerate(some)))
            for n, some in enumerate(commits)
        ),
    )


@settings(max_examples=examples(0.6), deadline=None)
@given(
    histories(),
    st.sampled_from([0, 0.01, 0.3, 1, 10, 1_000]),
    st.sampled_from([0, 1, 24]),
    st.sampled_from([32 * MIB, 128 * MIB, GIB]),
    st.booleans(),
)
def test_a_recommendation_follows_from_the_figures_that_it_shows(
    history: CommitTrace, queries_per_hour: float, tail_hours: float, target_bytes: int, enabled: bool
) -> None:
    prices = CostModel(queries_per_hour=queries_per_hour, tail_hours=tail_hours)
    policy = Policy(enabled=enabled, target_bytes=target_bytes)
    nothing = replay_untouched(history, policy, tail_ms=prices.tail_ms)
    found = recommend(history, policy, prices, nothing)
    stated = CHANGE.search(found.message)
    event(found.message.split(" ", 1)[0] + (" " + stated["claim"] if stated else ""))
    assert (found.best.cost_s < 0.95 * found.current.cost_s) == found.is_change == bool(found.properties)
    assert ("Set " in found.message) == found.is_change
    assert all(f"{name}={value}" in found.message for name, value in found.properties.items())
    assert (found.properties == {"lakewright.enabled": "false"}) == found.message.startswith("Leave this table alone:")
    if stated:
        files, before, rewritten, rewritten_before = (
            figure(stated[name]) for name in ("files", "before", "bytes", "bytes_before")
        )
        assert CLAIMS[stated["claim"]] == (
            (files > before) - (files < before),
            (rewritten > rewritten_before) - (rewritten < rewritten_before),
        )
        assert files == pytest.approx(found.best.replayed.mean_files, rel=0.006)
        assert rewritten == pytest.approx(found.best.replayed.bytes_rewritten, rel=0.006)
    else:
        assert not found.is_change or "enabled=false" in found.message


@pytest.mark.parametrize("name", [*sorted(RULES), "lakewright"])
@settings(max_examples=examples(0.2), deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 30).map(lambda size: 2 * MIB * size), min_size=1, max_size=40), min_size=1),
    st.randoms(use_true_random=False),
)
def test_removals_of_all_that_was_written_empty_a_table_under_any_rule(
    name: str, commits: list[list[int]], random: Random
) -> None:
    made = [
        Commit(n, n * 60_000, "WRITE", tuple(DataFile(f"f{n}-{i}", size, WHOLE_TABLE) for i, size in enumerate(sizes)))
        for n, sizes in enumerate(commits)
    ]
    files = [file for commit in made for file in commit.added]
    random.shuffle(files)
    for n in range(4):
        gone = tuple(RemovedFile(file.path, None, file.size_bytes, WHOLE_TABLE) for file in files[n::4])
        made.append(Commit(len(made), len(made) * 60_000, "DELETE", (), gone))
    history = CommitTrace((), tuple(made))
    done = replay_peer(history, POLICY, RULES[name]) if name in RULES else replay_lakewright(history, POLICY, tail_ms=1)
    assert done.files_at_end == 0
    assert done.bytes_added == sum(file.size_bytes for file in files)


SMALL = Policy(target_bytes=MIB)


@given(st.lists(st.integers(0, 3 * MIB), max_size=60))
def test_the_histogram_holds_every_file_on_the_level_of_its_size(sizes: list[int]) -> None:
    layout = layout_view(stats_of_sizes(SMALL.size_levels, sizes), SMALL.size_levels)
    for level in layout.levels:
        inside = [
            size
            for size in sizes
            if level.from_bytes <= size and (level.below_bytes is None or size < level.below_bytes)
        ]
        assert (level.files, level.bytes) == (len(inside), sum(inside))
    assert sum(level.files for level in layout.levels) == layout.files == len(sizes)
    mean = sum((MIB - min(size, MIB)) ** 2 for size in sizes) / len(sizes) if sizes else 0
    assert layout.mse_bytes2 == pytest.approx(mean)
    assert layout.rms_shortfall == pytest.approx(math.sqrt(mean) / MIB, abs=1e-6)
