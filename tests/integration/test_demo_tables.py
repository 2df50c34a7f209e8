"""The demonstration's tables without Lakewright: what its writer appends is what it counts and reads in the end."""

import random
from pathlib import Path

import pytest

from services.demo.row_checksum import Fingerprint, commit_rows, fingerprint
from services.demo.tables import FORMATS
from services.demo.writer import APPENDERS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")


@pytest.mark.parametrize("kind", FORMATS)
def test_what_the_writer_appends_is_counted_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = FORMATS[kind](tmp_path / "a folder")
    for name, value in table.writer_environment().items():
        monkeypatch.setenv(name, value)
    dice, written = random.Random(7), Fingerprint()
    with table.served():
        table.create()
        assert table.history().commits == 0
        appender = APPENDERS[kind](table.location)
        for _ in range(3):
            rows = commit_rows(dice, written.rows)
            assert appender.append(rows)
            written += fingerprint(rows)
        history = table.history()
        assert (history.commits, history.rewrites) == (3, 0)
        assert history.files_added == len(history.live) >= 3
        assert fingerprint(table.read()) == written
