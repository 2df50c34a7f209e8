"""A rebuild counts files in columns; the result is that of counting them one by one, whatever the log holds."""

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.formats.delta.damage import LogFile, parsed_lines, split_lines
from decider.formats.delta.log import DeltaLog
from decider.state.file_columns import COLUMNS, MAX_TARGET_BYTES, FileColumns, LiveFiles, count_live
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.stores import RootedStore
from shared.errors import Corrupt, LakewrightError
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.partition_count import count_partitions
from shared.layout.partition_stats import CUBE_TAG
from shared.paths.boundary import Boundary
from shared.policy.policy import GIB, MIB, Policy, PortablePaths
from shared.table import PartitionKey, Snapshot, TableMetadata, TableProtocol
from tests.support.examples import examples
from tests.support.random_logs import PLACE, RandomLog

BOUNDARY = Boundary(("file:///data",), allows_external_files=True)
SEEDS = min(300, examples(0.3))
"""Random logs of each kind, by the profile of Hypothesis."""


def opened(log: RandomLog, boundary: Boundary | None = None) -> DeltaLog:
    return DeltaLog(ObjectReader(RootedStore(log.store), location=PLACE, meter=ReadMeter()), boundary)


def policies(dice: random.Random) -> Policy:
    return Policy(
        target_bytes=dice.choice((64 * 1024, 8 * MIB, 128 * MIB, 16 * GIB)),
        time_window_s=dice.choice((None, 3600, 86_400)),
        delete_ratio_threshold=dice.choice((None, Fraction(1, 10), Fraction(1, 2))),
        portable_paths=dice.choice(list(PortablePaths)),
    )


def assert_same(log: RandomLog, policy: Policy, boundary: Boundary | None = None) -> LiveFiles | None:
    async def read() -> tuple[Snapshot, LiveFiles] | None:
        one_by_one = opened(log, boundary)
        try:
            snapshot = await one_by_one.snapshot()
        except LakewrightError as problem:
            with pytest.raises(type(problem)):
                await one_by_one.live_files()
            return None
        return snapshot, await one_by_one.live_files()

    found = asyncio.run(read())
    if found is None:
        return None
    snapshot, live = found
    assert live.head == replace(snapshot, files=())
    assert live.totals == (len(snapshot.files), sum(file.size_bytes for file in snapshot.files))
    for tag in (CUBE_TAG, CELL_TAG):
        counted = ClusteredFiles.of((file.size_bytes, tag in file.tags) for file in snapshot.files)
        assert live.clustered(in_cells=tag == CELL_TAG) == counted
    assert count_live(live, policy) == count_partitions(snapshot.files, policy)
    return live


@pytest.mark.parametrize("kind", ["usual", "twice", "moves"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_counting_in_columns_gives_what_counting_one_by_one_gives(kind: str, seed: int) -> None:
    log = RandomLog(seed, twice=kind == "twice", moves=kind == "moves")
    log.write()
    assert_same(log, policies(random.Random(seed)), random.Random(seed).choice((None, BOUNDARY)))


def test_most_files_of_the_logs_above_are_counted_in_columns() -> None:
    """Else the test above would show nothing."""
    seen: Counter[str] = Counter()
    for seed in range(25):
        log = RandomLog(seed)
        log.write()
        try:
            live = asyncio.run(opened(log).live_files())
        except LakewrightError:
            seen["refused"] += 1
            continue
        seen["in columns"] += len(live.columns.table)
        seen["others"] += len(live.others)
        seen["partitions"] += len(live.columns.partitions)
    print(dict(seen))
    assert min(seen["in columns"], seen["others"]) > 250
    assert seen["partitions"] > 25
    assert seen["refused"] < 3


@pytest.mark.parametrize("twice", [False, True])
def test_a_checkpoint_of_several_batches_is_counted_as_a_whole(twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decider.formats.delta.checkpoint.BATCH_ROWS", 7)
    monkeypatch.setattr("decider.state.file_columns.GROUP_ROWS", 11)
    for seed in range(1 + SEEDS // 6):
        log = RandomLog(seed, files=200, twice=twice)
        log.write()
        assert_same(log, policies(random.Random(seed)))


def test_a_file_that_is_in_a_checkpoint_twice_counts_once() -> None:
    log = RandomLog(1, files=9)
    log.columns, log.has_vectors = [], False
    log.write()
    assert log.live
    file = log._add("same") | {"path": "same", "size": 1, "modificationTime": 1, "tags": None}
    log._put(f"{20:020d}.checkpoint.parquet", log._parquet([*log._first(), {"add": file}, {"add": dict(file)}]))
    live = assert_same(log, Policy())
    assert live is not None
    assert live.totals[0] == 1


def test_damage_in_a_checkpoint_is_reported_with_its_row() -> None:
    log = RandomLog(3, files=9)
    log._put(f"{0:020d}.checkpoint.parquet", log._parquet([*log._first(), {"add": {**log._add("f"), "size": -1}}]))
    with pytest.raises(LakewrightError, match=r"checkpoint.parquet, row 3: add.size is -1"):
        asyncio.run(opened(log).live_files())


@pytest.mark.parametrize("sizes", [[2**63 - 1] * 5, [0] * 5, [16 * GIB - 1] * 3])
def test_sums_beyond_64_bits_are_exact(sizes: list[int]) -> None:
    partition = PartitionKey("{}")
    rows = [
        dict(zip(COLUMNS.names, (f"f{n}", 0, size, 0, *[False] * 3, None), strict=True)) for n, size in enumerate(sizes)
    ]
    table = COLUMNS.empty_table().from_pylist(rows, schema=COLUMNS)
    head = Snapshot(0, 0, TableMetadata("t"), TableProtocol(1, 2), ())
    live = LiveFiles(head, FileColumns(table, (partition,)), ())
    state = count_live(live, Policy(target_bytes=16 * GIB))[partition].state
    assert (live.totals, state.bytes) == ((len(sizes), sum(sizes)), sum(sizes))
    assert state.shortfall == sum(max(0, 16 * GIB - size) ** 2 for size in sizes)


def test_a_target_whose_shortfalls_could_not_be_summed_is_refused() -> None:
    live = LiveFiles.of(Snapshot(0, 0, TableMetadata("t"), TableProtocol(1, 2), ()))
    with pytest.raises(ValueError, match="at most"):
        count_live(live, Policy(target_bytes=MAX_TARGET_BYTES + 1))


LOG = LogFile("file:///lake/t", 12, f"{12:020d}.json")
INT64 = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def parsed(data: bytes) -> list[tuple[int, dict[str, object]]]:
    return list(parsed_lines(split_lines(data), LOG))


@given(st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4), max_size=4), st.booleans())
def test_whatever_the_standard_library_writes_is_read_as_it_reads_it(
    actions: list[dict[str, object]], ascii_only: bool
) -> None:
    """NaN, infinities and halves of surrogate pairs included."""
    lines = [json.dumps(action, ensure_ascii=ascii_only) for action in actions]
    data = "\n".join(lines).encode(errors="surrogatepass")
    try:
        expected = [json.loads(line) for line in data.decode().split("\n") if line]
    except UnicodeDecodeError:
        with pytest.raises(Corrupt, match="UTF-8"):
            parsed(data)
    else:
        # repr, because NaN is not equal to itself.
        assert repr([action for _, action in parsed(data)]) == repr(expected)
