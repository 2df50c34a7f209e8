"""A record of any release is read as far as it can be: it raises nothing, loses nothing and fits the archive."""

import copy
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.api.routes.decisions import UNREADABLE, decision_view
from decider.archive.ledger_rows import LEDGER_SCHEMA, kept, ledger_row
from decider.decide import ledger
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from shared.errors import InvalidInput
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import MIB, Policy
from shared.table import PartitionKey, TableId, TableRef
from tests.support.decisions import decide_on_state, encoded

TABLE = TableRef(TableId("t"), "lake.t", "file:///lake/t")
POLICY = Policy(target_bytes=8 * MIB)
PARTITION = PartitionKey('{"dt":"a"}')
WORK = json.loads(
    encoded(decide_on_state(PARTITION, stats_of_sizes(POLICY.size_levels, [100_000] * 10), POLICY, 4), POLICY, 17)
)
FEW = json.loads(
    encoded(decide_on_state(PARTITION, stats_of_sizes(POLICY.size_levels, [MIB] * 2), POLICY, 4), POLICY, 17)
)

WEIRD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "\ud800", '{"dt":"\\ud800"}', "{}", "[]", "1/0", "1e999", "-1", "nan", "9" * 400]),
    st.text(max_size=9),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def changed(record: dict[str, Any], field: str, value: object) -> dict[str, Any]:
    """Return the record with another value; `policy.x` is a value of its policy, `state.3` a number of its state."""
    made = copy.deepcopy(record)
    name, _, inner = field.partition(".")
    if name == "policy" and inner:
        made["policy"] = json.dumps(json.loads(made["policy"]) | {inner: value})
    elif name == "state" and inner:
        numbers = made["state"].split(",")
        numbers[int(inner)] = str(value)
        made["state"] = ",".join(numbers)
    elif name == "predicted" and inner:
        made["predicted"][inner] = value
    else:
        made[name] = value
    return made


FIELDS = [
    *WORK,
    *("heat", "purgeable", "ask", "calibration", "new"),
    *(f"policy.{name}" for name in json.loads(WORK["policy"])),
    *(f"state.{place}" for place in range(18)),
    *(f"predicted.{name}" for name in WORK["predicted"]),
]


def shown(text: str) -> LedgerRecord | UnreadableRecord:
    """Read a record, archive it and show it as the API does."""
    row = ledger_row(TABLE, "1767276187000-3", text, "queued")
    kept_row = pa.Table.from_pylist([row], schema=LEDGER_SCHEMA).to_pylist()[0]
    assert (kept_row["record"], kept_row["entry"], kept_row["outcome"]) == (text, "1767276187000-3", "queued")
    made = ledger.read(text, "queued", 1_767_276_187_000)
    view = json.loads(decision_view(made, ()).model_dump_json())
    assert (kept_row["decision"] is None) == isinstance(made, UnreadableRecord) == (view["decision"] == UNREADABLE)
    assert (
        (kept_row["version"], kept_row["partition_key"])
        == (made.version, made.partition)
        == (view["version"], view["partition_key"])
    )
    return made


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy.full_file_threshold", "1/100"),
        ("policy.max_mode", "zorder"),
        ("policy.target_bytes", "8 MiB"),
        ("reason", "full_moon"),
        ("verdict", "perhaps"),
        ("ask", "everything"),
        ("calibration", {"moons": 3}),
        ("heat", "1/0"),
        ("predicted", {"files_replaced": 10}),
        ("state", "1,2,3"),
        ("at", ledger.MAX_AT_MS + 1),
        ("at", -1),
        ("predicted.bytes", 2**70),
    ],
)
def test_what_another_release_wrote_is_shown_by_its_version_and_partition_with_its_text(
    field: str, value: object
) -> None:
    text = json.dumps(changed(FEW if field == "policy.target_bytes" else WORK, field, value))
    made = shown(text)
    assert isinstance(made, UnreadableRecord)
    assert (made.version, made.partition, made.text, made.outcome) == (4, PARTITION, text, "queued")
    assert "cannot read" in made.message
    with pytest.raises(InvalidInput):
        ledger.decode(text)


@given(st.sampled_from(FIELDS), WEIRD, st.sampled_from([WORK, FEW]))
def test_whatever_a_field_holds_the_record_is_archived_and_shown(field: str, value: object, record: Any) -> None:
    if not field.startswith("predicted.") or "predicted" in record:
        shown(json.dumps(changed(record, field, value)))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "[" * 100_000, "9" * 5_000, '{"v": 1e999}'])
def test_text_that_is_no_record_is_archived_and_shown(text: str) -> None:
    assert isinstance(shown(text), UnreadableRecord)


def test_an_entry_without_a_record_keeps_all_that_is_there() -> None:
    assert kept({b"record": b"{}", b"out": b"queued"}) == ("{}", "queued")
    assert kept({b"line": b"x", b"out": b"queued"}) == ('{"line": "x", "out": "queued"}', "queued")
    assert kept({b"record": b"\xff"}) == ("\\xff", "")


@pytest.mark.parametrize("partition", ["{", "[1]", "7", '{"dt":1}', 7, None])
def test_a_record_whose_partition_is_none_is_shown_without_one(partition: object) -> None:
    made = shown(json.dumps(changed(WORK, "partition", partition)))
    assert isinstance(made, UnreadableRecord)
    assert (made.version, made.partition) == (4, None)
