"""A run leaves out remembered files and remembers what it meets; what is no plain file is refused before Spark."""

import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actor.odd_files import first_odd, local_boundary
from services.actor.settings import actor_settings
from shared.errors import Corrupt, InvalidInput, NoTable, OtherTable, RefusedFiles, Unsupported
from shared.formats.registry import support_of
from shared.partition_refusals import FIRST_HOLD, NOTHING, PartitionRefusals, TableFingerprint
from shared.paths.boundary import Boundary
from shared.policy.policy import MIB
from shared.refusals import RefusalReason
from shared.release import RELEASE
from shared.table import DataFile, TableMetadata
from tests.support.worker_world import EIGHT, PAYLOAD, POLICY, World

FINGERPRINT = TableFingerprint.of(TableMetadata("t"), POLICY)


def remembered(world: World) -> PartitionRefusals:
    """What the end of the one job says is to be remembered."""
    return PartitionRefusals.decode(str(world.ends()[-1]["refusals"]))


def refusing(world: World, *paths: str) -> None:
    world.engine.refuses = lambda file: file.path in paths


def test_a_refused_file_is_remembered_and_the_rest_of_its_group_is_written_by_the_same_run() -> None:
    world = World(*EIGHT, *EIGHT)
    refusing(world, "f3")
    assert world.run()
    end = world.end()
    assert (end["verdict"], end["error"]) == ("done", "")
    assert sorted(path for path in world.engine.files if path.startswith("f")) == ["f3"]
    (known,) = remembered(world).refusals
    assert (known.reason, known.paths, known.count) == ("types", ("f3",), 1)
    report = json.loads(end["result"])
    assert report["refusals"] == [{"reason": "types", "message": "a type that cannot be stored", "files": 1}]
    assert report["groups_refused"] == 1


def test_files_of_one_partition_that_readers_take_for_those_of_several_are_merged_apart() -> None:
    world = World(*EIGHT, *EIGHT, *EIGHT)
    spelled = {path: ("", "'p' is an empty string")[at % 2] for at, path in enumerate(world.engine.files)}
    world.engine.files = {path: replace(file, spelling=spelled[path]) for path, file in world.engine.files.items()}
    assert world.run()
    assert sorted((file.spelling, file.rows) for file in world.engine.files.values()) == [
        ("", 12 * EIGHT[0]),
        ("'p' is an empty string", 12 * EIGHT[0]),
    ]
    report = json.loads(world.end()["result"])
    assert (report["groups_refused"], report["before"]["files"], report["after"]["files"]) == (0, 24, 2)


def test_remembered_files_are_not_planned_and_nothing_new_is_written() -> None:
    world = World(*EIGHT)
    refusing(world, *(f"f{number}" for number in range(8)))
    world.run()
    again = World(*EIGHT)
    again.refusals = str(world.end()["refusals"])
    assert again.run()
    assert again.engine.group_counts == []
    assert (again.end()["verdict"], again.end()["refusals"]) == ("done", "-")


@pytest.mark.parametrize("change", ["gone", "schema", "properties", "deletes"])
def test_the_actor_itself_forgets_what_changed(change: str) -> None:
    world = World(*EIGHT)
    world.engine.schema_digest = "s"
    refusing(world, *(f"f{number}" for number in range(8)))
    world.run()
    again = World(*EIGHT)
    again.engine.schema_digest = "s"
    again.refusals = str(world.end()["refusals"])
    if change == "gone":
        again.engine.files["f8"] = again.engine.files.pop("f0")
        again.engine.files["f8"] = replace(again.engine.files["f8"], path="f8")
    if change == "deletes":
        again.engine.files["f0"] = replace(again.engine.files["f0"], dv_id="v")
    if change == "schema":
        again.engine.schema_digest = "other"
    if change == "properties":
        again.engine.configuration = {"delta.x": "1"}
    assert again.run()
    assert again.engine.group_counts == [1]
    assert not remembered(again).refusals


def test_the_rest_of_a_group_that_is_refused_again_is_refused_as_a_whole() -> None:
    """An engine that names one file at a time costs two attempts, not one for each file."""
    world = World(*EIGHT, *EIGHT)
    world.engine.refuses = lambda _: True
    first = world.engine._refused

    def one_at_a_time(group: Any) -> Any:
        end = first(group)
        error = RefusedFiles("no", reason=RefusalReason.TYPES, files=(group.files[0].path,))
        return replace(end, error=error)

    world.engine._refused = one_at_a_time  # type: ignore[method-assign]
    assert world.run()
    assert len(world.engine.attempts) == 2
    assert len(remembered(world).ids) == 16


def test_groups_that_are_refused_one_after_the_other_are_no_conflicts() -> None:
    world = World(*[5 * MIB] * 12)
    world.engine.refuses = lambda _: True
    assert world.run(groups_per_commit=1, max_conflicts=2)
    assert world.end()["verdict"] == "done"
    assert len(remembered(world).ids) == 12


def test_a_refusal_that_is_raised_is_that_of_the_one_group_it_can_be_about() -> None:
    world = World(*[5 * MIB] * 8)
    world.engine.broken = dict.fromkeys([file.partition for file in world.engine.files.values()], _refusal())
    assert world.run(max_rounds=20)
    assert world.end()["verdict"] == "done"
    assert remembered(world).ids
    assert all(one.count == 2 for one in remembered(world).refusals), "each group was tried by itself"


def _refusal() -> RefusedFiles:
    return RefusedFiles("no ids", reason=RefusalReason.COLUMNS_UNCLEAR)


@pytest.mark.parametrize(
    ("failure", "verdict", "reason"),
    [
        (_refusal(), "done", "columns_unclear"),
        (Unsupported("a feature"), "cancelled", "unsupported"),
        (Unsupported("no access", field="location"), "fail", None),
        (InvalidInput("a value"), "quarantine", None),
        (NoTable("it is gone"), "quarantine", None),
        (OtherTable("another"), "cancelled", None),
        (Corrupt("rows differ"), "quarantine", None),
    ],
)
def test_what_a_retry_cannot_cure_ends_the_job_at_once(failure: Exception, verdict: str, reason: str | None) -> None:
    world = World(payload=replace(PAYLOAD, fingerprint=FINGERPRINT.parts))

    def fail(*_: object, **__: object) -> None:
        raise failure

    world.engine.read_partition = fail  # type: ignore[assignment,method-assign]
    assert world.run()
    assert world.end()["verdict"] == verdict
    if reason is None:
        assert world.end()["refusals"] == "-"
    else:
        (known,) = remembered(world).refusals
        assert (known.reason, known.is_whole) == (reason, True)
        assert remembered(world).fingerprint == FINGERPRINT
        assert remembered(world).held_until > 0


def test_a_partition_is_held_in_the_steps_of_its_format() -> None:
    world = World(payload=replace(PAYLOAD, format="iceberg"))
    world.engine.format = "iceberg"
    world.engine.broken = {PAYLOAD_KEY: Unsupported("a feature")}
    assert world.run()
    held = remembered(world).held_until - world.engine.version
    assert held == FIRST_HOLD * support_of("iceberg").commit_step


def test_a_refusal_after_the_partition_was_read_holds_for_the_table_that_the_run_read() -> None:
    """The decider's fingerprint, which may be of another schema or other properties, does not count then."""
    world = World(payload=replace(PAYLOAD, fingerprint=TableFingerprint("", "other", RELEASE).parts))
    world.engine.broken = {PAYLOAD_KEY: Unsupported("a feature")}
    assert world.run()
    assert world.end()["verdict"] == "cancelled"
    (known,) = remembered(world).refusals
    assert (known.is_whole, remembered(world).fingerprint) == (True, FINGERPRINT)


def test_a_partition_that_is_refused_as_a_whole_is_not_planned_until_its_hold_is_over() -> None:
    known = NOTHING.in_force(FINGERPRINT).added(_refusal(), (), POLICY, now_ms=1)
    held = replace(known, futile_runs=1, held_until=2)
    world = World(*EIGHT)
    world.refusals = held.encode()
    assert world.run()
    assert (world.engine.group_counts, world.end()["refusals"]) == ([], "-")
    world = World(*EIGHT)
    world.engine.append([])
    world.refusals = held.encode()
    assert world.run()
    assert world.engine.group_counts == [1]
    assert world.end()["refusals"] == ""


def test_files_are_compared_by_path_whatever_their_size() -> None:
    known = NOTHING.in_force(FINGERPRINT).added(_refusal(), [DataFile("f0", 5, PAYLOAD_KEY)], POLICY, now_ms=1)
    world = World(*EIGHT, 100_000)
    world.refusals = known.encode()
    assert world.run()
    assert "f0" in world.engine.files


PAYLOAD_KEY = next(iter(World(*EIGHT).engine.files.values())).partition


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(place))


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a link": lambda place: place.symlink_to("/etc/passwd"),
}
PLACES = ("_delta_log/2.json", "_delta_log/_sidecars/a.parquet", "metadata/v2.metadata.json", "x.parquet")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for folder in ("_delta_log/_sidecars", "metadata", "p=1"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("_delta_log/1.json", "metadata/v1.metadata.json", "p=1/y.parquet"):
        (tmp_path / name).touch()
    return tmp_path


def check(table: Path, boundary: Boundary) -> None:
    boundary.check_table(table.as_uri())
    boundary.check_links(table.as_uri(), ["x.parquet", "p=1/y.parquet"])


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", PLACES)
def test_a_table_with_what_is_no_plain_file_is_refused_before_spark_opens_it(
    table: Path, place: str, kind: str
) -> None:
    boundary = actor_settings({}).boundary
    check(table, boundary)
    ODD[kind](table / place)
    if place == "x.parquet" and kind == "a link":
        expected = "is file:///etc/passwd by a link"
    else:
        expected = f"{place} is {kind} and not a plain file"
    with pytest.raises(Unsupported, match=expected):
        check(table, boundary)


def test_a_link_inside_of_a_table_to_a_plain_file_is_one_and_to_a_pipe_is_none(table: Path) -> None:
    boundary = Boundary(real_path=os.path.realpath, first_odd=first_odd)
    (table / "x.parquet").symlink_to(table / "p=1" / "y.parquet")
    check(table, boundary)
    os.mkfifo(table / "pipe")
    (table / "x.parquet").unlink()
    (table / "x.parquet").symlink_to(table / "pipe")
    with pytest.raises(Unsupported, match="pipe is a pipe"):
        check(table, boundary)


def test_what_is_missing_or_closed_is_left_to_who_opens_it(tmp_path: Path) -> None:
    assert first_odd(str(tmp_path / "none")) == ""


def test_an_actor_without_roots_follows_links_and_opens_no_odd_file(table: Path) -> None:
    found = local_boundary()
    assert found.first_odd is first_odd
    assert found.real_path(str(table)) == os.path.realpath(table)
