"""Each check tells right from wrong, names the place, and says what to do."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from actor.jvm.java import JavaSearch
from services.cli.checks import decider, machine, redis_server
from services.cli.checks.finding import Finding, FindingLevel, failed
from services.cli.commands import doctor
from services.cli.commands.doctor import DoctorSettings
from tests.support.fake_programs import fake_java


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10), "fail"), ((3, 11), "ok"), ((3, 13), "ok"), ((3, 14), "fail")]
)
def test_python_must_be_one_of_those_tested(version: tuple[int, int], status: str) -> None:
    assert machine.check_python(version).status == status


def test_java_is_named_with_its_home_or_refused_with_what_to_do(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17.0.9")
    good = machine.check_java(JavaSearch(work_dir=tmp_path, choice="system", java_home=str(home)))
    assert (good.status, good.where) == (FindingLevel.OK, str(home))
    bad = machine.check_java(JavaSearch(work_dir=tmp_path, choice=str(tmp_path)))
    assert bad.status is FindingLevel.FAIL
    assert "LAKEWRIGHT_JAVA" in bad.what


def test_missing_jars_are_a_warning_because_an_actor_fetches_them(tmp_path: Path) -> None:
    finding = machine.check_jars(tmp_path)
    assert finding.status is FindingLevel.WARN
    assert "make setup" in finding.action


@pytest.mark.parametrize(
    ("server", "status", "what"),
    [
        ({"redis_version": "6.2.14"}, FindingLevel.FAIL, "Redis 6.2.14"),
        ({"redis_version": "7.0.0"}, FindingLevel.OK, "Redis 7.0.0"),
        (
            {"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.2"},
            FindingLevel.OK,
            "Valkey 9.1.2",
        ),
        ({}, FindingLevel.FAIL, "Redis unknown"),
    ],
)
def test_redis_must_be_seven_or_newer(server: dict[str, object], status: FindingLevel, what: str) -> None:
    finding = redis_server.check_redis_version(server, "here")
    assert (finding.status, finding.what) == (status, what)


@pytest.mark.parametrize(
    ("persistence", "status"),
    [
        ({"aof_enabled": 1, "aof_last_write_status": "ok"}, FindingLevel.OK),
        ({"aof_enabled": 1, "aof_last_write_status": "err"}, FindingLevel.FAIL),
        ({"aof_enabled": 0}, FindingLevel.FAIL),
    ],
)
def test_redis_must_keep_what_it_acknowledged(persistence: dict[str, object], status: FindingLevel) -> None:
    assert redis_server.check_durability(persistence, "here").status is status


def test_redis_must_not_forget_when_full() -> None:
    assert redis_server.check_eviction({"maxmemory_policy": "noeviction"}, "here").status is FindingLevel.OK
    finding = redis_server.check_eviction({"maxmemory_policy": "allkeys-lru"}, "here")
    assert finding.status is FindingLevel.FAIL
    assert "allkeys-lru" in finding.what


@pytest.mark.parametrize(("skew_ms", "status"), [(0, "ok"), (2_000, "ok"), (-2_001, "warn"), (60_000, "warn")])
def test_clocks_may_differ_a_little(skew_ms: int, status: str) -> None:
    assert redis_server.check_clock(skew_ms, "here").status == status


def test_the_disk_is_judged_at_the_nearest_folder_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FREE_WARN_BYTES", 0)
    finding = machine.check_disk(tmp_path / "not" / "yet")
    assert (finding.status, finding.where) == (FindingLevel.OK, str(tmp_path))
    monkeypatch.setattr(machine, "FREE_WARN_BYTES", 2**80)
    assert machine.check_disk(tmp_path).status is FindingLevel.WARN
    monkeypatch.setattr(machine, "FREE_FAIL_BYTES", 2**80)
    assert machine.check_disk(tmp_path).status is FindingLevel.FAIL


def test_servers_that_do_not_answer_are_findings_and_not_exceptions(tmp_path: Path) -> None:
    """Port 1 of the loopback address refuses; a password never shows."""
    home = fake_java(tmp_path / "java", "21.0.8")
    settings = DoctorSettings(
        java=JavaSearch(work_dir=tmp_path, choice=str(home)),
        ivy_dir=tmp_path,
        data_dir=tmp_path,
        redis_url="redis://:secret@127.0.0.1:1/0",
        decider_url="http://127.0.0.1:1",
    )
    findings = doctor.run_checks(settings)
    assert [finding.check for finding in findings] == ["python", "java", "jars", "redis", "decider", "disk"]
    assert {finding.check for finding in findings if finding.status is FindingLevel.FAIL} >= {"redis", "decider"}
    assert "secret" not in doctor.to_json(findings)
    assert failed(findings)


@pytest.mark.parametrize(("is_ready", "status"), [(True, FindingLevel.WARN), (False, FindingLevel.FAIL)])
def test_no_redis_below_this_folder_is_no_failure_where_the_decider_is_ready(
    tmp_path: Path, is_ready: bool, status: FindingLevel
) -> None:
    """The commands work in any folder, and the default place of Redis is below the one where it was started."""
    (found,) = redis_server.check_redis(f"unix://{tmp_path}/redis.sock", is_decider_ready=is_ready)
    assert found.status is status
    assert ("where `lakewright standalone` was started" in found.action) is is_ready
    assert redis_server.check_redis("redis://127.0.0.1:1/0", is_decider_ready=True)[0].status is FindingLevel.FAIL


def actors(*states: str, age_s: float = 1.0) -> dict[str, object]:
    errors = {"died": "no memory"}
    times = {"heartbeat_age_s": age_s, "expires_after_s": 30.0}
    return {
        "actors": [
            {"id": f"actor-{one}", "state": one, "slots": 2, "error": errors.get(one, ""), **times} for one in states
        ]
    }


def test_without_an_actor_that_takes_jobs_the_doctor_warns() -> None:
    finding = decider.check_actors(actors(), "here")
    assert (finding.status, finding.what) == (FindingLevel.WARN, "none takes jobs")
    finding = decider.check_actors(actors("died", "drained"), "here")
    assert (finding.status, finding.what) == (
        FindingLevel.WARN, "none takes jobs (actor-died died: no memory; actor-drained drained)",
    )  # fmt: skip
    assert "lakewright actor" in finding.action


def test_a_wait_ends_when_an_actor_takes_jobs_or_when_it_was_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = Finding("decider", FindingLevel.OK, "ready", "here")
    answers = [
        [decider.check_decider("http://127.0.0.1:1")],
        [ready, decider.check_actors(actors(), "here")],
        [ready, decider.check_actors(actors("idle"), "here")],
    ]
    settings = DoctorSettings(JavaSearch(work_dir=tmp_path), tmp_path, tmp_path, "redis://nowhere", "http://nowhere")
    monkeypatch.setattr(doctor, "ASK_EVERY_S", 0.0)
    waiting = list(answers)
    monkeypatch.setattr(doctor, "check_service", lambda *_: waiting.pop(0))
    doctor.wait_for_service(settings)
    assert not waiting

    monkeypatch.setattr(doctor, "WAIT_S", 0.05)
    monkeypatch.setattr(doctor, "check_service", lambda *_: answers[1])
    doctor.wait_for_service(settings)


def test_actors_that_take_jobs_are_counted_with_their_slots() -> None:
    finding = decider.check_actors(actors("idle", "working", "drained"), "here")
    assert (finding.status, finding.what) == (FindingLevel.OK, "2 actors with 4 slots: actor-idle, actor-working")


def test_an_actor_that_died_or_is_silent_is_named_beside_those_that_take_jobs() -> None:
    finding = decider.check_actors(actors("idle", "died"), "here")
    assert (finding.status, finding.what) == (
        FindingLevel.WARN, "1 actor with 2 slots: actor-idle; actor-died died: no memory",
    )  # fmt: skip
    finding = decider.check_actors(actors("idle", age_s=11), "here")
    assert finding.status is FindingLevel.WARN
    assert "actor-idle sent no heartbeat for 11.0 s" in finding.what


def test_a_wrong_url_is_a_finding_too() -> None:
    assert [finding.status for finding in redis_server.check_redis("nonsense")] == [FindingLevel.FAIL]
    assert decider.check_decider("nonsense").status is FindingLevel.FAIL


def test_machines_get_json_and_people_get_every_word() -> None:
    findings = [Finding("disk", FindingLevel.WARN, "[Errno 28] little left", "/data", "make room")]
    assert json.loads(doctor.to_json(findings)) == {
        "ok": True,
        "findings": [
            {
                "check": "disk",
                "status": "warn",
                "what": "[Errno 28] little left",
                "where": "/data",
                "action": "make room",
            }
        ],
    }
    console = Console(file=io.StringIO(), width=200)
    doctor.show(findings, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(word in shown for word in ("disk", "warn", "[Errno 28] little left", "/data", "make room"))


def test_jobs_that_no_actor_can_run_are_a_finding_each() -> None:
    assert decider.check_unserved({"unserved": []}, "here") == []
    unserved = [{"ability": "iceberg/compact", "jobs": 3}]
    (finding,) = decider.check_unserved({"unserved": unserved}, "here")
    assert finding.status is FindingLevel.WARN
    assert finding.what == "3 jobs cannot run: no actor can do iceberg/compact"
    assert "iceberg/compact" in finding.action


def test_jobs_that_failed_are_named_with_their_error() -> None:
    held = {"id": "a.1.compact", "table_name": "sales", "partition_label": "dt=1", "attempts": 2, "error": "no disk"}
    (finding,) = decider.check_failing([held | {"retry_at": None}], "here")
    assert finding.what == "sales, dt=1: 2 failed attempts, `lakewright jobs requeue a.1.compact`: no disk"
    times = {"2126-01-01T14:03:07Z": "at 2126-01-01 14:03:07 UTC", "2026-01-01T14:03:07Z": "when an actor is free"}
    for retry_at, stated in times.items():
        (finding,) = decider.check_failing([held | {"retry_at": retry_at}], "here")
        assert f"2 failed attempts, next try {stated}: no disk" in finding.what


def test_tables_that_fail_or_have_invalid_properties_are_named_and_the_others_counted() -> None:
    rows = {"rows": [{"name": "sales.orders", "refusal": None}], "matching": 3}
    named, more = decider.check_tables(rows, "invalid_properties", "here")
    assert (named.check, named.what) == ("invalid properties", "sales.orders")
    assert (more.what, more.action) == ("2 more", "lakewright tables list --state invalid-properties")
    assert "lakewright tables show sales.orders" in named.action
    assert decider.check_tables({"rows": [], "matching": 0}, "failing", "here") == []


def test_refused_files_are_named_with_table_partition_file_and_remedy_and_the_others_counted() -> None:
    one = {
        "table": "sales",
        "partition_key": "{}",
        "partition_label": "dt=1",
        "files": 2,
        "paths": ["a.parquet"],
        "message": "an unsigned column",
        "remedy": "Run OPTIMIZE",
    }
    assert decider.check_refused({"partitions": 0, "refused": []}, "here") == []
    named, more = decider.check_refused({"partitions": 3, "refused": [one]}, "here")
    assert named.what == "sales, dt=1: 2 files such as a.parquet: an unsigned column"
    assert (named.status, named.action) == (FindingLevel.WARN, "Run OPTIMIZE")
    assert more.what == "2 more partitions with refused files"
