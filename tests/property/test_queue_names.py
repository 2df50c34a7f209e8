"""Any two keys of jobs have two ids, and any value of a setting can be typed as it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from services.cli.commands.queue_settings import changes, rows
from shared.queue.model import JobKey, job_id
from shared.queue.settings import SETTINGS

tables = st.from_regex(r"[A-Za-z0-9_.\-/]{1,20}", fullmatch=True)
kinds = st.from_regex(r"[A-Za-z0-9_\-]{1,20}", fullmatch=True)


@given(st.lists(st.builds(JobKey, table=tables, partition=st.text(), kind=kinds), unique=True))
def test_different_keys_have_different_ids(given_keys: list[JobKey]) -> None:
    assert len({job_id(key) for key in given_keys}) == len(given_keys)


@given(st.sampled_from([name for name, known in SETTINGS.items() if not known.is_set_by_decider]), st.data())
def test_what_is_shown_can_be_typed(name: str, data: st.DataObject) -> None:
    known = SETTINGS[name]
    value = data.draw(st.integers(known.low, known.high))
    stated = {
        "name": name,
        "value": value,
        "unit": known.unit.value,
        "default": known.default,
        "description": known.description,
    }
    ((short, spelled, *_),) = rows({"settings": [stated | {"minimum": known.low, "maximum": known.high}]})
    assert changes([f"{short}={spelled}"]) == {name: value}
