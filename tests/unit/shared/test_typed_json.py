"""Values come back from their texts as they were, numbers of others are bounded, and records name the release."""

import json
import tomllib
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

import pytest

from decider.decide.decision import TableSignals
from decider.state.commit_pace import CommitCounts, CommitPace
from decider.state.contention import ActivityWindow, WriteContention
from decider.state.level_fit import AppendedFiles, AppendedSizes, LevelFit
from decider.state.own_tail import OwnCommit
from decider.state.table_summary import TableSummary
from decider.state.target_fit import TargetBasis, TargetChange, TargetFit
from decider.store.registry.discovery_lease import DiscoveryProgress, DiscoveryState
from decider.store.registry.manual_runs import ManualRunRecord
from decider.store.registry.rejected_events import RejectedEvent
from decider.store.tables.advice_records import Advice, AdviceStatus, Analysis, Evidence, Judgement, ReplayedCost
from decider.store.tables.table_state import TableState
from shared.errors import InvalidInput
from shared.index.signal import IndexSignal
from shared.jobs.options import (
    ClusterOptions,
    DeduplicateOptions,
    ExpiryOptions,
    IndexJobOptions,
    PropertyOptions,
    VacuumOptions,
)
from shared.jobs.payload import JobPayload, PredictedCost
from shared.layout.cells.counts import CellFiles
from shared.layout.clustered_files import ClusteredFiles
from shared.layout.key_runs import KeyRuns
from shared.layout.removals import Removals
from shared.layout.upkeep import UpkeepFound
from shared.policy.parsers import duration_or_zero, interval, parse_duration
from shared.policy.policy import Policy, apply
from shared.policy.properties import read_properties
from shared.policy.property_table import PROPERTIES
from shared.policy.traits import LearnedValues
from shared.refusals import Refusal, RefusalCode
from shared.release import RELEASE, is_newer
from shared.table import PartitionColumn, PartitionKey, TableId, TableMetadata, TableProtocol
from shared.typed_json import from_json, from_values, to_json
from shared.whole_numbers import MAX_LONG, whole_number
from tests.support.property_samples import GOOD

COST = ReplayedCost(1.5, 2.5, 3.0, 4)
ADVICE = Advice(
    TableId("t"), 1, {"a": "b"}, "{}", "m", Evidence(1, 2, 3, 4.0, 5.0, COST, COST, 0.5), AdviceStatus.APPLIED
)

POLICY = Policy(learned=LearnedValues(Fraction(1, 3)), sort_by="a")
SIGNALS = TableSignals(
    *(
        7,
        Removals(5, ((0, 1, 2), (5, 3, 4)), 6, 7),
        3,
        4,
        KeyRuns(1, 2, 3),
        ClusteredFiles(1, 2, 3),
        CellFiles(ClusteredFiles(1, 2, 3), 4, 5, 6, 7),
    ),
    index=IndexSignal(7, refusal="no"),
    twins=("copy",),
    upkeep={"compute_statistics": UpkeepFound(51, 50, 1 << 20), "merge_deletes": UpkeepFound(7, 3)},
)
STATE = TableState(
    *(
        7,
        TableMetadata(
            "u", (PartitionColumn("a", "col-1", "date"),), {"k": "v"}, "delta", PartitionColumn("b", "b", "int")
        ),
    ),
    *(
        TableProtocol(3, 7, frozenset({"b", "a"}), frozenset({"c"})),
        "policy",
        "digest",
        {"lakewright.fan-in": "4"},
        1,
        2,
        3,
    ),
    *("why", "limits", WriteContention({PartitionKey("{}"): ActivityWindow(1, 2, 3, 4, 5, 6)}), True),
    *(Refusal(RefusalCode.QBEAST, "s", "r", "a", ("cluster",)), TableSummary(1, 2, 3, 2**70, 4, False, 5)),
    *(SIGNALS.removals, CommitCounts({PartitionKey("{}"): 2}), SIGNALS.key_runs),
    LevelFit(5, 6, Fraction(1, 7), AppendedSizes((AppendedFiles(1, 2), AppendedFiles(3, 4)))),
    ((20_000, 7),),
    TargetFit(7, (TargetChange(8, 9, 10, TargetBasis(11, 12, 13, 14), 15),)),
    *(CommitPace(7, 8, 5), 9, ((10, 2), (20, 3)), SIGNALS.clustered, SIGNALS.cells, "0.0.1", "etl"),
    (OwnCommit(30, "d", 31),),
)


@pytest.mark.parametrize(("name", "text", "value"), [(name, text, value) for name, text, _, value in GOOD])
def test_every_value_of_every_property_makes_the_round_trip(name: str, text: str, value: object) -> None:
    policy = apply(Policy(), read_properties({name: text}))
    came = Policy.decode(policy.encode())
    assert came == policy
    assert {one.name: type(getattr(came, one.name)) for one in fields(Policy)} == {
        one.name: type(getattr(policy, one.name)) for one in fields(Policy)
    }
    assert value in [getattr(came, one.name) for one in fields(Policy)]


def test_a_sample_exists_for_every_field_that_a_property_sets() -> None:
    assert {field for _, _, field, _ in GOOD} == {prop.policy_field for prop in PROPERTIES}


@pytest.mark.parametrize(
    "record",
    [
        ADVICE,
        Advice(
            *(TableId("t"), 1, {}, "{}", "m", ADVICE.proof),
            judgement=Judgement(1, 2, 3.0, 0.25, 4.0, 5.0, 6.0),
        ),
        Analysis(1, 2, "no log"),
        DiscoveryProgress("file:///lake", state=DiscoveryState.FAILED),
        ManualRunRecord("now", 1, 2, "queued", 3),
        RejectedEvent(1, "kafka", "no JSON", "{"),
        JobPayload(
            "file:///t", "t", POLICY, "eligible", PredictedCost(8, 4, 5), options={"steps": 2}, fingerprint=("a", "b")
        ),
        VacuumOptions(with_orphans=True, force=True, retain_s=0),
        DeduplicateOptions(5, dry_run=True),
        ExpiryOptions(5, dry_run=True),
        IndexJobOptions(1, 0),
        ClusterOptions(force=True),
        PropertyOptions({"lakewright.fan-in": "4"}),
        SIGNALS,
    ],
    ids=lambda record: type(record).__name__,
)
def test_every_stored_record_makes_the_round_trip(record: object) -> None:
    came = from_json(type(record), to_json(record))
    assert came == record
    assert repr(came) == repr(record)


def test_every_field_of_a_tables_state_makes_the_round_trip_as_a_field_of_its_hash() -> None:
    assert [one.name for one in fields(TableState) if getattr(STATE, one.name) == one.default] == []
    written = STATE.encode()
    came = TableState.decode({name.encode(): value.encode() for name, value in written.items()})
    assert came == STATE
    assert written.keys() - {one.name for one in fields(TableState)} == {"format", "table_uuid"}


@pytest.mark.parametrize("name", [one.name for one in fields(TableState)])
def test_of_a_state_that_is_stored_only_what_changed_is_written(name: str) -> None:
    stored, other = STATE.encode(), TableState(5, TableMetadata("u"), TableProtocol(1, 2), "p")
    new = replace(STATE, **{name: getattr(other, name)})
    written = new.encode(STATE)
    assert written.keys() == {name, "format", "table_uuid"}
    assert TableState.decode({**stored, **written}) == new


def test_values_at_their_default_are_not_written_and_a_job_that_needs_no_options_has_none() -> None:
    assert VacuumOptions().encode() == {}
    assert VacuumOptions.decode({}) == VacuumOptions()
    assert "options" not in json.loads(
        JobPayload("file:///t", "t", POLICY, "eligible", PredictedCost(8, 4, 5)).encode()
    )


@pytest.mark.parametrize("forged", [{"version": "7"}, {"version": True}, {"version": 7, "twins": 5}, {}])
def test_a_value_of_another_type_is_an_error(forged: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        from_values(TableSignals, forged)


class Color(StrEnum):
    """Of a value."""

    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner:
    """Inside of another one."""

    share: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    """Holds another one."""

    color: Color
    inner: Inner | None = None
    count: int | None = 7


def test_what_another_release_has_more_is_left_out_and_what_it_lacks_has_its_default() -> None:
    read = from_json(Outer, '{"color":"red","later":1,"inner":{"share":"1/3","later":2}}')
    assert read == Outer(Color.RED, Inner(Fraction(1, 3)))
    assert repr(from_json(Outer, '{"color":"red","inner":null,"count":null}')) == repr(Outer(Color.RED, None, None))


def test_a_value_that_the_type_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="blue"):
        from_json(Outer, '{"color":"blue"}')


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), (str(MAX_LONG), MAX_LONG)])
def test_ascii_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", " 1", "-1", "1.0", "²", "٣", str(MAX_LONG + 1), "9" * 5_000])
def test_any_other_text_is_none(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize("read", [parse_duration, duration_or_zero, interval])
def test_a_duration_beyond_what_an_engine_holds_is_refused(read: object) -> None:
    assert callable(read)
    assert read("interval 100000000 days") == 100_000_000 * 86_400
    with pytest.raises(ValueError, match="less than 292,000 years"):
        read(f"interval {'9' * 400} days")


ROOT = Path(__file__).resolve().parents[3]


def test_the_release_is_that_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == RELEASE


@pytest.mark.parametrize(("newer", "older"), [("0.1.1", "0.1.0"), ("0.10.0", "0.9.9"), ("1.0", "0.99"), ("0.1.0", "")])
def test_releases_are_ordered_by_their_numbers(newer: str, older: str) -> None:
    assert is_newer(newer, older)
    assert not is_newer(older, newer)
    assert not is_newer(newer, newer)


def test_options_name_what_a_table_lacks() -> None:
    options = PropertyOptions({"lakewright.fan-in": "4", "lakewright.tolerance": "0.1"})
    assert options.missing({}) == options.values
    assert options.missing({"lakewright.fan-in": "4", "lakewright.tolerance": "0.2"}) == {"lakewright.tolerance": "0.1"}
    assert options.missing({**options.values, "owner": "x"}) == {}


@pytest.mark.parametrize("name", ["delta.enableDeletionVectors", "write.format.default", "fan-in"])
def test_a_property_that_may_lock_readers_out_is_never_set(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a property of Lakewright"):
        PropertyOptions({"lakewright.fan-in": "4", name: "true"})
