"""What an operator may set of a queue is checked before it is sent, and a repetition is the same call."""

from collections.abc import Callable

import pytest

from shared.errors import InvalidInput
from shared.queue.admin_commands import SlotLimit, SlotQuota, pause, set_limit, set_weight
from shared.queue.model import Scope

REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("level", lambda: set_weight("q", Scope.QUEUE, "", 2.0)),
    ("weight", lambda: set_weight("q", Scope.TABLE, "t", 0.009)),
    ("level", lambda: set_limit("q", Scope.BAND, "1", SlotLimit(1))),
    ("name", lambda: pause("q", Scope.QUEUE, "t")),
    ("name", lambda: pause("q", Scope.BAND, "5")),
    ("name", lambda: pause("q", Scope.BAND, "high")),
    ("tenant", lambda: pause("q", Scope.TENANT, "a b")),
    ("limit", lambda: SlotLimit(0)),
    ("quota", lambda: SlotQuota(101)),
]


@pytest.mark.parametrize(("field", "call"), REFUSED)
def test_what_cannot_be_set_is_refused_by_the_name_of_the_field(field: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        call()
    assert refused.value.field == field


@pytest.mark.parametrize(("limit", "text"), [(None, ""), (SlotLimit(3), "3"), (SlotQuota(25), "25%")])
def test_a_limit_is_a_number_of_slots_a_share_of_them_or_none(limit: SlotLimit | SlotQuota | None, text: str) -> None:
    assert set_limit("q", Scope.TABLE, "t", limit).args == ("table", "t", text)


def test_a_pause_names_what_it_holds_and_a_resumption_too() -> None:
    assert pause("q", Scope.BAND, "0").args == ("band", "0", 1)
    assert pause("q", Scope.QUEUE, paused=False).args == ("queue", "", 0)
