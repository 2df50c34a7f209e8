"""No bytes that others choose end, fill or stall the decider: damaged logs, events, tables files, catalogs' metadata.

`LAKEWRIGHT_FUZZ` is the number of damaged inputs of each kind (`make fuzz`: 10,000), `LAKEWRIGHT_FUZZ_SEED` the first
seed; a failure names its own.
"""

import gzip
import json
import os
import random
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.declared.tables_file import TablesFileReader
from decider.events.detect import FORMATS, parse_body, parse_value
from decider.events.resolver import AllowedRoots
from decider.events.table_hint import ParsedEvents, TableHint
from decider.formats.delta.actions import decode_commit
from decider.formats.delta.checkpoint import CheckpointPart, read_files, read_head
from decider.formats.delta.damage import LogFile
from decider.formats.delta.listing import read_checksum
from decider.formats.delta.metadata import check_readable
from decider.formats.delta.rewrites import decode_event
from decider.formats.iceberg.catalogs import translated
from decider.formats.iceberg.rest_client import LimitedRestCatalog
from decider.state.effective_policy import EffectivePolicy, LogStatus, PolicyDefaults
from decider.state.fold import fold
from shared.errors import InvalidInput, LakewrightError
from shared.formats.iceberg.manifests import Manifest, decode_live_files, decode_manifest, decode_manifest_list
from shared.formats.iceberg.metadata import decode_head, parse_metadata
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.formats.iceberg.retention import plan_expiry
from shared.paths.boundary import Boundary
from shared.table import TableId, TableRef
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer
from tests.support.damaged_samples import SAMPLES_OF, NoSample, Samples, with_odd_values
from tests.support.event_samples import SAMPLES, Sample, dumped
from tests.support.time_limits import scaled

INPUTS = int(os.environ.get("LAKEWRIGHT_FUZZ", "40"))
FIRST_SEED = int(os.environ.get("LAKEWRIGHT_FUZZ_SEED", "1"))
SECONDS = 2.0
"""Longest time for one damaged input of some kilobytes."""
MEMORY_BYTES = 500 * 1024 * 1024
"""What all damaged inputs of one kind may add to the peak of the process."""
ODD_VALUES = 0.8
"""Share of inputs whose values are damaged: nineteen in twenty whose bytes are, are no JSON any more."""
LOG = LogFile("file:///lake/t", 1, "00000000000000000001.json")
FIRST = TableRef(TableId("t"), "t", "file:///lake/t")
DEFAULTS = PolicyDefaults()
LISTED = Manifest("m", 0, 3, 9)
BY_DAY = Spec(0, (SpecField("d", "day", "date"),))


def _follow(data: bytes) -> None:
    """Do with a commit what a refresh does: decode it, resolve the policy that it sets, and count its files."""
    decode_event(data, LOG)
    commit = decode_commit(data, LOG, None)
    if commit.protocol is not None:
        check_readable(commit.protocol, "t")
    metadata = commit.metadata
    if metadata is not None:
        fold(commit, metadata, _resolve(metadata.configuration, metadata.format).policy)


def _resolve(configuration: Mapping[str, str], table_format: str = "delta") -> EffectivePolicy:
    return DEFAULTS.resolve(FIRST, configuration, {}, LogStatus(format=table_format))


def _read_properties(data: bytes) -> None:
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(data)
    if isinstance(found, dict):
        for table_format in ("delta", "iceberg"):
            _resolve({str(name): str(value) for name, value in found.items()}, table_format)


def _read_metadata(data: bytes) -> None:
    head = decode_head(parse_metadata(data, "t"), "t")
    _resolve(head.metadata.configuration, "iceberg")
    with suppress(InvalidInput):
        plan_expiry((head,), 1, 2)


def _ask_unity(data: bytes) -> None:
    """Give an answer to every call, those that do not fit it, too."""
    unity = UnityCatalog("u", lambda _: UnityAnswer(200, data), Boundary(("file:///lake",)))
    calls = (lambda: unity.table(("a", "b", "c")), unity.catalogs, lambda: unity.schemas("a"))
    for call in (*calls, lambda: unity.tables("a", "b")):
        with suppress(LakewrightError):
            call()


def _ask_rest(data: bytes) -> None:
    """Load a table from the catalog's answer."""
    rest: Any = object.__new__(LimitedRestCatalog)
    rest._given, rest.properties, rest.uri = {"uri": "http://catalog"}, {"uri": "http://catalog"}, "http://catalog"
    rest._auth_manager, rest._namespace_separator = None, "."
    answer = SimpleNamespace(content=data, raise_for_status=lambda: None)
    rest._session = SimpleNamespace(get=lambda *_, **__: answer)
    with translated("catalog"):
        loaded = rest.load_table("db.t")
    decode_head(loaded.raw, "t")


def _read_checkpoint(data: bytes) -> None:
    part = CheckpointPart(LogFile("file:///lake/t", 1, "1.checkpoint.parquet"), memoryview(data))
    head = read_head([part])
    read_files(part, head.metadata.partition_columns)


READER = TablesFileReader(AllowedRoots(), PolicyDefaults)
READERS: dict[str, Callable[[bytes], object]] = {
    "commits": _follow,
    "checkpoints": _read_checkpoint,
    "checksums": read_checksum,
    "events": parse_body,
    "properties": _read_properties,
    "tables files": lambda data: READER.read(data, "tables.yaml"),
    "metadata": _read_metadata,
    "manifest lists": lambda data: decode_manifest_list(data, "m"),
    "manifests": lambda data: (
        decode_manifest(data, Manifest("m", 0, 3, 9), {0: BY_DAY}),
        decode_live_files(data, "m"),
    ),
    "answers of Unity catalogs": _ask_unity,
    "answers of REST catalogs": _ask_rest,
}
TOKENS = (
    b"null",
    b"-1",
    b"1e999",
    b"9" * 40,
    b'"\\ud800"',
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"\0" * 100,
    b"\xff",
    b"NaN",
    b"true",
    b"",
    b"\n",
    b"&a [*a]",
    b"..",
)


def damaged(samples: Samples, chance: random.Random) -> bytes:
    """Return a sample with odd values, or with one to five changes of its bytes.

    Changes of bytes are flips, cuts, repetitions, and what is odd in JSON, YAML and numbers.
    """
    value = chance.choice(samples.values)
    if chance.random() < ODD_VALUES:
        with suppress(*NoSample):
            return samples.write(with_odd_values(value, chance))
    found = bytearray(samples.write(value))
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(found) + 1)
        end = min(len(found), at + chance.choice((1, 2, 8, 100)))
        match chance.randrange(4):
            case 0:
                found[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
            case 1:
                del found[at:end]
            case 2:
                found[at:at] = found[at:end] * chance.choice((1, 2, 50))
            case _:
                found[at:end] = chance.choice(TOKENS)
    return bytes(found)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", READERS)
def test_damaged_bytes_are_an_error_of_ours_in_bounded_time_and_memory(kind: str) -> None:
    samples, read = SAMPLES_OF[kind], READERS[kind]
    for sample in samples.values:
        read(samples.write(sample))
    before, began_all_s, slowest_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time(), 0.0
    for seed in range(FIRST_SEED, FIRST_SEED + INPUTS):
        chance = random.Random(seed)
        data = damaged(samples, chance)
        began_s = time.process_time()
        try:
            read(data)
        except LakewrightError:
            pass
        except BaseException as problem:
            raise AssertionError(f"seed {seed} of {kind}: {type(problem).__name__}: {problem}") from problem
        slowest_s = max(slowest_s, time.process_time() - began_s)
        assert slowest_s < scaled(SECONDS), f"seed {seed} of {kind}"
    added = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    taken_s = time.process_time() - began_all_s
    print(
        f"{kind}: {INPUTS} from seed {FIRST_SEED}, {taken_s:.1f} s, slowest {slowest_s:.3f} s, {added >> 20} MiB more"
    )
    assert added < MEMORY_BYTES, f"{kind}, seeds from {FIRST_SEED}"


def test_compressed_metadata_are_decompressed_up_to_a_limit() -> None:
    bomb = gzip.compress(bytes(600 * 1024 * 1024))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LakewrightError, match="bytes"):
        parse_metadata(bomb, "t")
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < MEMORY_BYTES


ANY_SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
ANY_VALUE = st.recursive(
    ANY_SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
KEYS = (
    st.sampled_from(["table", "version", "added", "removed", "operation", "Records", "EventName", "Key", "Event"])
    | st.text()
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
NEAR_S3 = st.fixed_dictionaries(
    {
        "Records": st.lists(
            st.fixed_dictionaries(
                {
                    "eventName": st.sampled_from(["ObjectCreated:Put", "s3:ObjectCreated:Copy"]) | SCALARS,
                    "s3": st.fixed_dictionaries(
                        {
                            "bucket": st.fixed_dictionaries({"name": SCALARS}),
                            "object": st.fixed_dictionaries(
                                {
                                    "key": st.text(st.characters()).map(lambda text: f"{text}/_delta_log/{7:020d}.json")
                                    | SCALARS
                                }
                            ),
                        }
                    )
                    | SCALARS,
                }
            ),
            max_size=3,
        )
    }
)


def leads_to_one_place(hint: TableHint) -> bool:
    """A location, a folder of metadata, or a name: that of a table in a catalog may have been registered, too."""
    has_name = hint.name is not None or bool(hint.catalog_path)
    return sum((hint.location is not None, hint.metadata_folder is not None, has_name)) == 1


@given(st.sampled_from(SAMPLES), st.sampled_from(SAMPLES), ANY_VALUE, st.data())
def test_whatever_is_put_anywhere_into_a_sample_it_is_taken_or_refused(
    sample: Sample, other: Sample, value: Any, data: st.DataObject
) -> None:
    """No event, however strange, may raise anything else: an unforeseen exception is a 500 that a sender repeats."""
    body = [sample.body]
    place: Any = body
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(st.sampled_from([value, other.body, dumped(other.body).decode(), [place[key]]]))
    for source in (None, sample.source, other.source):
        taken, refusal = outcome(partial(parse_value, body[0], source=source))
        assert all(map(leads_to_one_place, taken.hints))
        assert refusal is None or (refusal.field and refusal.allowed and len(str(refusal).encode()) < 2_000)


@given(
    JSON | NEAR_S3 | st.fixed_dictionaries({"table": SCALARS}, optional={"version": SCALARS}),
    st.none() | st.sampled_from([shape.source for shape in FORMATS]),
)
def test_any_json_value_yields_hints_or_invalid_input(body: object, source: str | None) -> None:
    """No event, however strange, may raise anything else: an unforeseen exception is a 500 that a sender repeats."""
    taken, refusal = outcome(partial(parse_value, body, source=source))
    assert all(map(leads_to_one_place, taken.hints))
    assert refusal is None or refusal.field
    assert str(refusal).encode()


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_yield_hints_or_invalid_input(body: bytes) -> None:
    taken, refusal = outcome(partial(parse_body, body))
    assert refusal is None or (refusal.field and not taken.hints)


def outcome(read: Callable[[], ParsedEvents]) -> tuple[ParsedEvents, InvalidInput | None]:
    try:
        return read(), None
    except InvalidInput as refusal:
        return ParsedEvents(), refusal
