"""Properties with which writers note bounds of a column that a table's own properties leave out."""

from collections.abc import Mapping
from typing import Any

import pytest

from decider.formats.delta.bounds_change import bounds_change as delta_change
from decider.formats.iceberg.bounds_change import bounds_change as iceberg_change

NAMED, COUNTED = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
MODE = "write.metadata.metrics."


def fields(*kinds: Any) -> list[dict[str, Any]]:
    return [{"name": f"c{n}", "type": kind} for n, kind in enumerate(kinds)]


PLAIN = fields(*["long"] * 40)
PAIR = {"type": "struct", "fields": fields("long", {"type": "struct", "fields": fields("long", "long")})}
LIST = {"type": "array", "elementType": "long"}


@pytest.mark.parametrize(
    ("configuration", "schema", "column", "change"),
    [
        pytest.param({}, PLAIN, "c31", {}, id="of the first 32"),
        pytest.param({}, PLAIN, "c32", {COUNTED: "33"}, id="beyond the first 32"),
        pytest.param({COUNTED: "0"}, PLAIN, "c31", {COUNTED: "32"}, id="as many more as by default"),
        pytest.param({COUNTED: "0"}, PLAIN, "c32", {}, id="too many more"),
        pytest.param({COUNTED: "0"}, PLAIN, "c0", {COUNTED: "1"}, id="none"),
        pytest.param({COUNTED: "-1"}, PLAIN, "c39", {}, id="all"),
        pytest.param({COUNTED: "many"}, PLAIN, "c39", {}, id="no number"),
        pytest.param({COUNTED: "4"}, fields(PAIR, LIST, "long"), "c2", {COUNTED: "5"}, id="fields of structs count"),
        pytest.param({COUNTED: "2"}, fields("long", "long", "date"), "c2", {}, id="partition columns do not"),
        pytest.param({NAMED: "c1, `C2`"}, PLAIN, "c2", {}, id="named"),
        pytest.param({NAMED: "c1,c2", COUNTED: "-1"}, PLAIN, "c3", {NAMED: "c1,c2,`c3`"}, id="not named"),
        pytest.param({NAMED: ""}, PLAIN, "c3", {NAMED: "`c3`"}, id="nothing is named"),
        pytest.param({NAMED: "a, `b, c`"}, PLAIN, "c3", {NAMED: "a, `b, c`,`c3`"}, id="a name with a comma stays"),
        pytest.param({NAMED: "a,`b, c`"}, PLAIN, "b, c", {}, id="a name with a comma"),
        pytest.param({NAMED: "s.x"}, PLAIN, "s.x", {NAMED: "s.x,`s.x`"}, id="a field of a struct is another column"),
        pytest.param({NAMED: "`s.x`,`a``b`"}, PLAIN, "a`b", {}, id="a name with a backtick"),
    ],
)
def test_delta_leaves_out_what_is_not_named_or_beyond_a_count(
    configuration: Mapping[str, str], schema: list[dict[str, Any]], column: str, change: Mapping[str, str]
) -> None:
    assert delta_change(configuration, schema, ["c0"] if schema[-1]["type"] == "date" else [], column) == change


@pytest.mark.parametrize(
    ("configuration", "column", "is_left_out"),
    [
        pytest.param({}, "c99", False, id="of the first 100"),
        pytest.param({}, "c100", True, id="beyond the first 100"),
        pytest.param({f"{MODE}max-inferred-column-defaults": "5"}, "c5", True, id="beyond a count"),
        pytest.param({f"{MODE}max-inferred-column-defaults": "x"}, "c119", False, id="no number"),
        pytest.param({f"{MODE}default": "counts"}, "c0", True, id="only counts"),
        pytest.param({f"{MODE}default": "None"}, "c0", True, id="nothing"),
        pytest.param({f"{MODE}default": "full"}, "c119", False, id="all"),
        pytest.param({f"{MODE}default": "none", f"{MODE}column.c7": "truncate(4)"}, "c7", False, id="by its name"),
        pytest.param({f"{MODE}column.c7": "none"}, "c7", True, id="not, by its name"),
    ],
)
def test_iceberg_leaves_out_by_mode_or_beyond_a_count(
    configuration: Mapping[str, str], column: str, is_left_out: bool
) -> None:
    columns = {f"c{n}": (n, "long") for n in range(120)}
    change = {f"{MODE}column.{column}": "truncate(16)"} if is_left_out else {}
    assert iceberg_change(configuration, columns, column) == change


def test_delta_needs_no_bounds_of_a_column_from_which_partitions_are_generated() -> None:
    schema = fields("date", "timestamp", "long")
    schema[0]["metadata"] = {"delta.generationExpression": "CAST(COALESCE(C1, c22) AS DATE)"}
    changes = [delta_change({COUNTED: "0"}, schema, ["c0"], name) for name in ("c1", "c2")]
    assert changes == [{}, {COUNTED: "2"}]
