"""The demonstration's table without Lakewright: what its writer appends is what it counts and reads in the end."""

import json
import sys
from pathlib import Path

import pytest

from services.demo import writer
from services.demo.row_checksum import DemoTable, fingerprint, read_manifest

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")


def test_what_the_writer_appends_is_counted_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, manifest = DemoTable(tmp_path / "a folder"), tmp_path / "written.jsonl"
    table.create()
    assert table.history().commits == 0
    posted: list[dict[str, object]] = []
    monkeypatch.setattr(writer, "_post", lambda _client, _url, event: posted.append(event))
    given = {"--seconds": "0.5", "--per-second": "6", "--seed": "7", "--manifest": str(manifest)}
    flat = [part for pair in given.items() for part in pair]
    monkeypatch.setattr(sys, "argv", ["writer", "--location", table.location, "--events-url", "unused", *flat])
    writer.main()
    history = table.history()
    assert history.commits == len(posted) == len(manifest.read_text().splitlines()) >= 1
    assert history.rewrites == 0
    assert history.files_added == len(history.live)
    assert fingerprint(table.read()) == read_manifest(manifest)
    assert f"{history.commits:020d}.json" in json.dumps(posted[-1])
