"""Each fault that the checker names is planted here, and found: a checker that cannot fail is worth nothing."""

from pathlib import Path

import pytest

from tests.soak.checker import broken_answers, compare, lost_answers
from tests.soak.journal import Answer, Journals
from tests.soak.model import Model
from tests.soak.operations import Action, Operation
from tests.soak.test_model import Story, row
from tests.soak.values import Row

PLACE = ("t", 7, "reader")
EXPECTED = {1: row(1), 2: row(2)}


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ([row(1), row(1), row(2)], "twice"),
        ([row(1)], "missing"),
        ([row(1), row(2), row(3)], "unexpected"),
        ([row(1), row(2, "other")], "changed"),
        ([row(1), row(2, partition="b")], "changed"),
        ([row(1), {**row(2), "extra_0": "x"}], "changed"),
    ],
)
def test_every_difference_is_found_and_counted_once(found: list[Row], field: str) -> None:
    difference = compare(PLACE, EXPECTED, found)
    assert difference
    counts = {name: getattr(difference, name) for name in ("twice", "missing", "unexpected", "changed")}
    assert counts == {name: int(name == field) for name in counts}
    assert field in str(difference)


def test_a_row_that_is_there_twice_with_two_values_is_found_twice() -> None:
    difference = compare(PLACE, EXPECTED, [row(1), row(2), row(2, "old")])
    assert (difference.twice, difference.changed) == (1, 1)


def test_equal_rows_are_no_difference() -> None:
    """Whatever their order, and where a column is null that the writer did not know."""
    assert not compare(PLACE, EXPECTED, [{**row(2), "extra_0": None}, row(1)])


def journals(model: Model, *operations: Operation, **answers: Answer) -> tuple[Journals, dict[str, Model]]:
    made = Journals(Path("nowhere"), {one.nonce: one for one in operations}, dict(answers))
    return made, {"t": model}


def test_an_accepted_operation_that_is_not_in_the_log_is_a_lost_commit() -> None:
    story = Story()
    append = Operation("lost", "t", Action.APPEND, 0, rows=(row(1),))
    known = journals(story.model, append, lost=Answer(1))
    assert broken_answers(*known) == ["t: lost (append) was accepted and is not in the log"]


def test_an_accepted_operation_without_an_effect_needs_no_commit() -> None:
    story = Story()
    vacuum = Operation("none", "t", Action.VACUUM, 0)
    assert broken_answers(*journals(story.model, vacuum, none=Answer(0))) == []


def test_an_operation_that_lies_behind_the_version_it_was_accepted_as_is_found() -> None:
    """Its commit was written a second time, or the log was set back."""
    story = Story()
    story.append(row(1))
    story.append(row(2))
    known = journals(story.model, *story.operations.values(), **{"n-2": Answer(1)})
    assert broken_answers(*known) == ["t: n-2 was accepted as 1 and is version 2"]


def test_operations_whose_answer_was_lost_are_counted() -> None:
    story = Story()
    for key in range(3):
        story.append(row(key))
    known = journals(story.model, *story.operations.values(), **{"n-1": Answer(1), "n-2": Answer(None, "timeout")})
    assert lost_answers(*known) == 2
    assert broken_answers(*known) == []
