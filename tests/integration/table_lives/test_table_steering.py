"""What properties of a real table do: switch it, change its policy, its place in the queue, and start a run."""

from dataclasses import replace

import pytest

from tests.support.live_decider import POLICY, LiveDecider, WrittenTable, decider_settings
from tests.support.table_lives import alter, expect_exact, jobs

pytestmark = pytest.mark.redis


def test_switching_off_withdraws_what_waits_and_switching_on_brings_it_back(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    assert len(jobs(decider, name)) == 1
    alter(table, {"self-optimizing.enabled": "false"})
    decider.sweep()
    assert jobs(decider, name) == []
    alter(table, {"self-optimizing.enabled": None})
    decider.sweep()
    assert len(jobs(decider, name)) == 1
    expect_exact(decider, name, table)


def test_a_policy_changed_while_a_job_runs_lets_it_finish_and_decides_again(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    from actor.queue_executor import SyncQueueExecutor, connect
    from shared.queue import commands
    from shared.queue.model import HeartbeatEntry, JobState

    name = decider.register(table.path)
    with connect(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        (claim,) = queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000))
        alter(table, {"lakewright.min-input-files": "5", "lakewright.priority": "high"})
        decider.sweep()
        running = decider.get(f"/v1/jobs/{claim.id}")["job"]
        assert running["state"] == JobState.LEASED
        (beat,) = queue.run(
            commands.heartbeat(
                "default", worker="w", beats=[HeartbeatEntry(claim.id, claim.token, "{}")], lease_ms=60_000
            )
        )
        assert "STOP" not in str(beat).upper()
    records = decider.get(f"/v1/tables/{name}")
    values = {one["property"]: one for one in records["policy"]["values"]}
    assert values["lakewright.min-input-files"]["value"] == 5
    table.append()
    decider.sweep()
    newest = decider.get(f"/v1/tables/{name}/decisions", limit=1)["decisions"][0]
    assert newest["policy_version"] == records["policy"]["version"]


def test_priority_weight_and_limits_reach_the_queue_and_are_taken_back(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None

    def queue_limits() -> dict[str, str]:
        found = decider.run(decider.services.queue.admin.weights_and_limits())
        return {key: value for key, value in found.items() if known.id in key}

    asked = {"lakewright.priority": "high", "lakewright.weight": "2.5", "self-optimizing.quota": "0.25"}
    alter(table, dict(asked))
    decider.sweep()
    assert queue_limits() == {f"weight:table|{known.id}": "2.5", f"limit:table|{known.id}": "25%"}
    assert jobs(decider, name)[0]["band"] == "normal", "it was queued before"
    table.append(1)
    decider.sweep()
    assert jobs(decider, name)[0]["band"] == "high"
    alter(table, {"lakewright.weight": None, "self-optimizing.quota": None, "lakewright.max-concurrent-jobs": "3"})
    decider.sweep()
    assert queue_limits() == {f"limit:table|{known.id}": "3"}
    assert decider.client.delete(f"/v1/tables/{name}").status_code == 204
    assert queue_limits() == {}


def test_a_queue_limit_that_a_person_set_stays_while_the_policy_says_nothing(
    decider: LiveDecider, table: WrittenTable
) -> None:
    from shared.queue.admin_commands import SlotLimit
    from shared.queue.model import Scope

    name = decider.register(table.path)
    known = decider.run(decider.services.tables.registry.find(name))
    assert known is not None
    decider.run(decider.services.queue.admin.set_limit(Scope.TABLE, known.id, SlotLimit(7)))
    alter(table, {"lakewright.fan-in": "4"})
    decider.sweep()
    assert decider.run(decider.services.queue.admin.weights_and_limits())[f"limit:table|{known.id}"] == "7"


def test_a_run_asked_for_by_a_property_starts_once_and_is_ignored_visibly_otherwise(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)

    def stated(changes: dict[str, str | None]) -> tuple[str, int, int]:
        alter(table, changes)
        decider.sweep()
        found = decider.get(f"/v1/tables/{name}")["manual_run"]
        assert found["message"]
        return found["outcome"], found["jobs"], len(jobs(decider, name))

    kind = "use.optimization.type"
    assert stated({kind: "compaction"}) == ("auto_optimize_enabled", 0, 1)
    assert stated({kind: None}) == ("property_removed", 0, 1)
    assert decider.get(f"/v1/tables/{name}")["manual_run"]["requested"] == ""
    alter(table, {"lakewright.enabled": "false"})
    decider.sweep()
    assert jobs(decider, name) == []
    assert stated({kind: "z-order"}) == ("unknown_type", 0, 0)
    started = stated({kind: "compaction", "use.optimization.bytes-per-iter": "1073741824"})
    assert started == ("started", 1, 1)
    table.append()
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["manual_run"]["outcome"] == "started", "the value did not change"
    assert stated({"use.optimization.bytes-per-iter": None})[0] in ("started", "already_running")


def test_unset_of_qbeasts_switch_switches_the_table_off_until_a_switch_says_otherwise(
    decider: LiveDecider, table: WrittenTable
) -> None:
    switch = "use.optimization.autoOptimize.enabled"
    name = decider.register(table.path)

    def after(changes: dict[str, str | None]) -> tuple[object, str, int]:
        alter(table, changes)
        decider.sweep()
        values = decider.get(f"/v1/tables/{name}")["policy"]["values"]
        (enabled,) = [one for one in values if one["property"] == "lakewright.enabled"]
        return enabled["value"], enabled["set_by"], len(jobs(decider, name))

    assert after({switch: "true"}) == (True, switch, 1)
    assert after({switch: None}) == (False, switch, 0)
    assert "was unset" in " ".join(decider.get(f"/v1/tables/{name}")["policy"]["notes"])
    assert after({"lakewright.fan-in": "4"}) == (False, switch, 0)
    table.append()
    decider.sweep()
    assert jobs(decider, name) == []
    assert after({switch: "true"}) == (True, switch, 1)
    assert after({switch: None})[0] is False
    assert after({"lakewright.enabled": "true"}) == (True, "lakewright.enabled", 1)
    assert after({"lakewright.enabled": None}) == (True, "default", 1)


def test_properties_of_other_systems_that_are_not_obeyed_are_shown_and_hold_nothing_back(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    qbeast = "use.optimization.autoOptimize."
    foreign = [
        f"{qbeast}revisionId",
        *(f"{qbeast}optimizeUnindexedFiles.{key}" for key in ("enabled", "prioritize", "batchBytes", "fromTimestamp")),
    ]
    alter(table, {**dict.fromkeys(foreign, "1"), "lakewright.fan-in": "4"})
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert {one["property"]: one["blocking"] for one in policy["issues"]} == {
        **dict.fromkeys(foreign, False),
    }
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.fan-in"] == 4


def test_a_second_request_while_a_run_is_going_on_is_ignored_visibly(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    from actor.queue_executor import SyncQueueExecutor, connect
    from shared.queue import commands

    alter(table, {"lakewright.enabled": "false"})
    name = decider.register(table.path)
    alter(table, {"use.optimization.type": "full"})
    decider.sweep()
    with connect(redis_url) as client:
        queue = SyncQueueExecutor(client, "default")
        assert queue.run(commands.claim("default", worker="w", nonce="n", slots=1, lease_ms=60_000))
    alter(table, {"use.optimization.type": "Major"})
    decider.sweep()
    assert decider.get(f"/v1/tables/{name}")["manual_run"]["outcome"] == "already_running"


def test_a_request_older_than_the_first_look_starts_nothing(decider: LiveDecider, table: WrittenTable) -> None:
    alter(table, {"lakewright.enabled": "false", "use.optimization.type": "compaction"})
    name = decider.register(table.path)
    found = decider.get(f"/v1/tables/{name}")["manual_run"]
    assert (found["outcome"], jobs(decider, name)) == ("set_before_first_read", [])


def test_a_bad_value_and_an_unknown_property_keep_the_last_good_policy_and_are_shown(
    decider: LiveDecider, table: WrittenTable
) -> None:
    name = decider.register(table.path)
    alter(table, {"lakewright.fan-in": "4"})
    decider.sweep()
    alter(table, {"lakewright.fan-in": "many", "lakewright.speed": "11", "lakewright.retain-hours": "3"})
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.fan-in"] == 4
    shown = {one["property"]: one["blocking"] for one in policy["issues"]}
    assert shown == {"lakewright.fan-in": True, "lakewright.speed": True, "lakewright.retain-hours": False}
    alter(table, {"lakewright.fan-in": "3", "lakewright.speed": None})
    decider.sweep()
    policy = decider.get(f"/v1/tables/{name}")["policy"]
    assert {one["property"]: one["value"] for one in policy["values"]}["lakewright.fan-in"] == 3
    assert decider.partitions(name) == table.count_files(replace(POLICY, fan_in=3))


def test_a_request_is_left_to_the_deciders_of_the_tables_group(
    decider: LiveDecider, table: WrittenTable, redis_url: str
) -> None:
    """Any other decider takes the table for one that is not automatic, which is what a request is honoured on."""
    alter(table, {"lakewright.queue": "nightly", "lakewright.enabled": "false"})
    name = decider.register(table.path)
    with LiveDecider(decider_settings(redis_url, queue="nightly")) as theirs:
        theirs.sweep()
        alter(table, {"use.optimization.type": "compaction"})
        decider.sweep()
        assert decider.get(f"/v1/tables/{name}")["manual_run"] is None
        assert jobs(decider, name) == []
        theirs.sweep()
        assert theirs.get(f"/v1/tables/{name}")["manual_run"]["outcome"] == "started"
        assert (len(jobs(theirs, name)), jobs(decider, name)) == (1, [])
