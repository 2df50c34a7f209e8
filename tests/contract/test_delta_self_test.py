"""The self-test passes with the Delta that is installed, and no engine starts with one that behaves otherwise."""

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from actor.formats.delta.engine import EngineSettings, start_engine
from actor.formats.delta.log import TableLog
from actor.formats.delta.parquet_task import ParquetTasks
from shared.errors import PermanentError
from tests.support.delta_lab import DeltaLab
from tests.support.long_suites import beyond

pytestmark = pytest.mark.spark


def test_the_self_test_passes_here_and_leaves_no_table(lab: DeltaLab) -> None:
    with capture_logs(processors=[merge_contextvars]) as logs:
        start_engine(lab.spark, EngineSettings(), scratch=f"file://{lab.directory}")

    conflict = next(one for one in logs if one["event"] == "commit_failed")
    assert conflict["self_test"], "a conflict that is provoked is marked, so that the actor's log leaves it out"
    assert not list(lab.directory.iterdir())


@pytest.mark.parametrize("broken", beyond(1, ["copy", "commit", "rows"]))
def test_with_a_delta_that_behaves_otherwise_no_engine_starts(
    lab: DeltaLab, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "commit":
        monkeypatch.setattr(TableLog, "commit", lambda *_: 99)
    elif broken == "copy":
        monkeypatch.setattr(ParquetTasks, "run", lambda *_: {"rows": 0})
    else:
        frame = TableLog.frame
        monkeypatch.setattr(TableLog, "frame", lambda *arguments: frame(*arguments).filter("id <> 7"))

    with pytest.raises(PermanentError, match="no table is touched"):
        start_engine(lab.spark, EngineSettings(), scratch=f"file://{lab.directory}")
