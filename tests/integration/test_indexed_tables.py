"""A table with a Qbeast index: decided by its blocks, and given to no rewrite that merges files by size."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.jobs.payload import JobPayload
from shared.queue import queries
from tests.support.live_decider import LiveDecider
from tests.support.qbeast_data import qbeast_data
from tests.support.stack import commits_of

pytestmark = pytest.mark.redis

LOG = qbeast_data() / "qbeast"
URL = "/v1/tables/t"
SWITCH = "use.optimization.autoOptimize.enabled"
AT_ONCE = {"lakewright.index-every": "0 s"}


class IndexedTable:
    """A copy of the log of a table that Qbeast's library wrote; its index has eligible blocks."""

    def __init__(self, path: Path) -> None:
        self.path = Path(shutil.copytree(LOG, path))
        actions = [action for commit in commits_of(self.path) for action in commit]
        self._metadata = [action["metaData"] for action in actions if "metaData" in action][-1]
        self.version = len(commits_of(self.path)) - 1

    def set_properties(self, **properties: str) -> None:
        """Replace all properties but those of the index, as ALTER TABLE does."""
        kept = {name: text for name, text in self._metadata["configuration"].items() if name.startswith("qbeast.")}
        self.commit({"metaData": {**self._metadata, "configuration": {**kept, **AT_ONCE, **properties}}})

    def removed_by(self, version: int) -> list[str]:
        return [action["remove"]["path"] for action in commits_of(self.path)[version] if "remove" in action]

    def tags_of_an_indexed_file(self) -> dict[str, str]:
        adds = [action["add"] for commit in commits_of(self.path) for action in commit if "add" in action]
        tags: dict[str, str] = next(add["tags"] for add in adds if add.get("tags", {}).get("revision") == "1")
        return tags

    def commit(self, *actions: object) -> None:
        self.version += 1
        file = self.path / "_delta_log" / f"{self.version:020d}.json"
        file.write_text("\n".join(json.dumps(action) for action in actions) + "\n")


def registered(decider: LiveDecider, path: Path) -> IndexedTable:
    table = IndexedTable(path)
    decider.register(table.path, "t")
    return table


def reasons(decider: LiveDecider) -> set[tuple[str, str]]:
    found = decider.get(f"{URL}/decisions", limit=100)["decisions"]
    return {(one["action"], one["reason"]) for one in found if one["reason"] != "refused"}


@pytest.mark.parametrize("switch", ["lakewright.index", SWITCH])
def test_a_job_is_decided_once_the_owner_switches_it_on_and_withdrawn_once_that_ends(
    decider: LiveDecider, tmp_path: Path, switch: str
) -> None:
    table = registered(decider, tmp_path / "t")
    decider.tick()
    assert decider.job_kinds() == []
    assert decider.get(URL)["refusal"]["code"] == "qbeast"
    assert "lakewright.index=on" in decider.post(f"{URL}/actions/index", {}).json()["message"]

    table.set_properties(**{switch: "on" if switch.startswith("lakewright") else "true"})
    decider.tick()
    assert decider.job_kinds() == ["index"]
    shown = decider.get(URL)
    assert shown["refusal"] is None
    assert any("its files are merged by its index alone" in note for note in shown["policy"]["notes"])
    assert reasons(decider) == {("compact", "indexed_table"), ("index", "files_not_indexed")}
    texts = [one["message"] for one in decider.get(f"{URL}/decisions", limit=100)["decisions"]]
    assert any("fragmentation 2.29" in text and "2 files not indexed." in text for text in texts)

    for force in (False, True):
        answer = decider.post(f"{URL}/optimize", {"force": force}).json()
        assert (answer["jobs"], answer["reasons"]) == ([], {"indexed_table": 1})
    assert decider.post(f"{URL}/actions/deduplicate", {}).status_code == 409
    assert decider.post(f"{URL}/actions/cluster", {}).status_code == 422

    table.set_properties()
    decider.tick()
    assert decider.job_kinds() == []


@pytest.mark.parametrize(
    ("own", "asked", "is_whole"),
    [("", [], False), ("true", [], True), ("", ["true"], True), ("true", ["false"], False), ("whole", [], False)],
)
def test_a_whole_revision_is_rewritten_where_the_request_or_else_the_table_says_so(
    decider: LiveDecider, tmp_path: Path, own: str, asked: list[str], is_whole: bool
) -> None:
    table = registered(decider, tmp_path / "t")
    table.set_properties(**{"lakewright.index": "on"}, **({"use.optimization.revision-rewrite": own} if own else {}))
    decider.sweep()
    command = ["--url", decider.url, "index", "t", *(["--revision-rewrite", *asked] if asked else [])]
    assert "1 job." in CliRunner().invoke(app, command).stdout
    assert queued_options(decider).get("whole_revision", False) is is_whole


def test_a_job_names_the_options_of_its_request_and_its_first_iterations_bytes(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    table.set_properties(**{"lakewright.index": "on", "lakewright.vacuum": "on"})
    decider.sweep()
    found = decider.command("index", "t", "--revision-id", "1", "--bytes-per-iter", "0")
    assert "1 job." in found.stdout
    assert queued_options(decider) == {"revision": 1, "budget_bytes": 0}
    at = ["--table-location", str(table.path), "--revision-rewrite", "false"]
    assert "joined the waiting job" in decider.command("index", *at).stdout
    refused = {
        "true or false": [*at[:2], "--revision-rewrite", "all"],
        "name the table": ["t", *at],
        "its location": [],
        "does not exist": ["--table-location", str(tmp_path / "none")],
    }
    for text, arguments in refused.items():
        answer = decider.command("index", *arguments)
        assert answer.exit_code
        assert text in answer.output + str(answer.exception), (text, answer.output)
    for kind in ("vacuum", "checkpoint"):
        assert decider.post(f"{URL}/actions/{kind}", {}).json()["message"] == "1 job."
    assert decider.post(f"{URL}/actions/index", {"revision": 0}).status_code == 422
    assert decider.post("/v1/tables/none/actions/index", {}).status_code == 404


def test_properties_that_contradict_the_index_are_a_reason_and_no_job(decider: LiveDecider, tmp_path: Path) -> None:
    table = registered(decider, tmp_path / "t")
    table.set_properties(**{SWITCH: "true", "use.optimization.autoOptimize.revisionId": "9"})
    decider.tick()
    assert (decider.job_kinds(), reasons(decider)) == ([], {("compact", "indexed_table"), ("index", "index_refused")})
    texts = [one["message"] for one in decider.get(f"{URL}/decisions", limit=100)["decisions"]]
    assert any("the table has no revision 9" in text for text in texts)
    # Revision 0 is that of files that are not indexed, which are not to be indexed.
    of_none = {
        "use.optimization.autoOptimize.revisionId": "0",
        "use.optimization.autoOptimize.optimizeUnindexedFiles.enabled": "false",
    }
    table.set_properties(**{SWITCH: "true"}, **of_none)
    decider.tick()
    assert decider.job_kinds() == ["index"], "what contradicts another property is ignored"


def test_one_run_is_requested_by_either_name_and_ignored_where_it_runs_or_is_automatic(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    decider.tick()
    table.set_properties(**{"use.optimization.type": "LeveledCompaction"})
    decider.tick()
    assert (decider.job_kinds(), decider.get(URL)["manual_run"]["outcome"]) == (["index"], "started")
    assert ("index", "requested") in reasons(decider)
    table.set_properties(**{"use.optimization.type": "CubeDefragmentation", "use.optimization.bytes-per-iter": "0"})
    decider.tick()
    assert (decider.job_kinds(), decider.get(URL)["manual_run"]["outcome"]) == (["index"], "already_running")
    table.set_properties(**{"use.optimization.type": "other", SWITCH: "true"})
    decider.tick()
    assert decider.get(URL)["manual_run"]["outcome"] == "auto_optimize_enabled"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LeveledCompaction", {}),
        ("Unindexed", {"strategy": "unindexed"}),
        ("sampling", {"strategy": "sampling"}),
        ("revision-rewrite", {"whole_revision": True}),
        ("zorder", None),
    ],
)
def test_the_value_of_the_property_names_the_strategy_of_the_run(
    decider: LiveDecider, tmp_path: Path, kind: str, options: dict[str, Any] | None
) -> None:
    table = registered(decider, tmp_path / "t")
    decider.tick()
    table.set_properties(**{"use.optimization.type": kind})
    decider.tick()
    outcome = decider.get(URL)["manual_run"]["outcome"]
    if options is None:
        assert (decider.job_kinds(), outcome) == ([], "unknown_type")
        return
    assert (decider.job_kinds(), outcome) == (["index"], "started")
    assert queued_options(decider) == options


def test_a_strategy_that_does_not_exist_is_refused_by_name(decider: LiveDecider, tmp_path: Path) -> None:
    registered(decider, tmp_path / "t").set_properties(**{"lakewright.index": "on"})
    decider.sweep()
    answer = decider.post(f"{URL}/actions/index", {"strategy": "zorder"})
    assert (answer.status_code, "unindexed, leveled, sampling" in answer.text) == (422, True)
    assert decider.post(f"{URL}/actions/index", {"strategy": "leveled"}).json()["message"] == "1 job."
    assert queued_options(decider) == {"strategy": "leveled"}


def queued_options(decider: LiveDecider) -> dict[str, Any]:
    (job,) = [one for one in decider.get("/v1/jobs")["jobs"] if one["kind"] == "index"]
    executor = decider.services.queue.executor
    queued = decider.run(executor.run(queries.job(executor.name, job["id"])))
    assert queued is not None
    return dict(JobPayload.decode(queued.payload).options)


def test_an_optimization_by_others_is_noticed_by_the_next_decision(decider: LiveDecider, tmp_path: Path) -> None:
    table = registered(decider, tmp_path / "t")
    table.set_properties(**{"lakewright.index": "on"})
    decider.tick()
    texts = [one["message"] for one in decider.get(f"{URL}/decisions", limit=100)["decisions"]]
    # The library's own optimize() in the recorded log: of everything, and of one staged file.
    assert any("Others rewrote it lately, the last time in version 7." in text for text in texts)


def test_rows_that_another_optimizer_doubles_stop_further_jobs_until_they_are_taken_back(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    # With the list of files that version 6 has replaced already, as the library does it.
    old, *_ = table.removed_by(6)
    made = {"path": "again.parquet", "partitionValues": {}, "size": 1328, "modificationTime": 1, "dataChange": False}
    made |= {"stats": '{"numRecords":23}', "tags": table.tags_of_an_indexed_file()}
    remove = {"path": old, "deletionTimestamp": 1, "dataChange": False, "size": 3330}
    table.commit({"commitInfo": {"operation": "WRITE", "timestamp": 1}}, {"add": made}, {"remove": remove})
    doubled = table.version
    table.set_properties(**{"lakewright.index": "on"})
    decider.tick()
    found = [one for one in decider.get(f"{URL}/decisions", limit=100)["decisions"] if one["action"] == "index"]
    assert found[0]["reason"] == "index_rows_doubled"
    assert f"version {doubled} rewrote {old}, which version 6 had removed" in found[0]["message"]
    assert f"RESTORE the table to version {doubled - 1}" in found[0]["message"]
    assert decider.job_kinds() == []

    gone = {"path": "again.parquet", "deletionTimestamp": 2, "dataChange": True, "size": 1328}
    table.commit({"commitInfo": {"operation": "RESTORE", "timestamp": 2}}, {"remove": gone})
    decider.tick()
    assert decider.job_kinds() == ["index"]


def test_an_index_whose_table_is_clustered_is_refused_whatever_is_switched_on(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = registered(decider, tmp_path / "t")
    features = ["clustering", "domainMetadata"]
    table.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}})
    table.set_properties(**{"lakewright.index": "on"})
    decider.tick()
    assert decider.job_kinds() == []
    refusal = decider.get(URL)["refusal"]
    assert (refusal["code"], "clustering" in refusal["reason"]) == ("unsafe_feature", True)
    assert "clustering" in decider.post(f"{URL}/actions/index", {}).json()["message"]


def test_what_if_says_where_the_iterations_of_an_index_are_estimated(decider: LiveDecider, tmp_path: Path) -> None:
    table = registered(decider, tmp_path / "t")
    table.set_properties(**{"lakewright.index-sample": "0.2"})
    decider.sweep()
    (value,) = [one for one in decider.get(URL)["policy"]["values"] if one["property"] == "lakewright.index-sample"]
    assert (value["value"], value["source"]) == (0.2, "table")
    answer = decider.post(f"{URL}/what-if", {}).json()
    assert any("lakewright tables index TABLE --what-if" in note for note in answer["notes"])
    found = decider.get(f"{URL}/index", what_if=True)["forecasts"]
    assert {one["selection"] for one in found} == {"leveled", "sampling", "everything"}
    for name in ("t", str(table.path)):
        shown = decider.command("tables", "index", name, "--what-if").stdout
        for selection in ("leveled", "sampling", "everything"):
            assert selection in shown
