"""The standalone runs as many actors of each group as the queue's setting says, and none twice."""

from pathlib import Path

import pytest

from actor.queue_executor import connect
from services.standalone.stack import StandaloneOptions, children
from services.standalone.wanted_actors import WantedActors
from shared.queue import keys
from tests.support.fake_programs import fake_redis

pytestmark = pytest.mark.redis


def options(folder: Path, **more: str) -> StandaloneOptions:
    server = fake_redis(folder / "bin", "Valkey server v=9.1.2 sha=0")
    given = {"LAKEWRIGHT_GROUPS": "etl", **more}
    return StandaloneOptions(data_dir=folder / "data", environment=given, redis_server=str(server))


def test_each_group_has_the_actors_that_its_setting_names(tmp_path: Path, redis_url: str) -> None:
    own = options(tmp_path, LAKEWRIGHT_ACTOR_NAME="worker")
    specs = children(own)
    with connect(redis_url) as redis:
        wanted = WantedActors(own, specs, redis)
        assert [one.name for one in wanted.specs()] == ["redis", "decider", "actor", "actor-etl"]
        redis.hset(keys.config("default"), "actors", "2")
        redis.hset(keys.config("default/etl"), "actors", "0")
        found = wanted.specs()
        assert [one.name for one in found] == ["redis", "decider", "actor", "actor-2"]
        assert found[:2] == specs[:2]
        redis.hset(keys.config("default/etl"), "actors", "many")
        assert [one.name for one in wanted.specs()][-1] == "actor-etl"
    shown = [
        (one.environment["LAKEWRIGHT_ACTOR_NAME"], Path(one.environment["LAKEWRIGHT_READY_FILE"]).name)
        for one in wanted.specs()[2:]
    ]
    assert shown == [("worker", "actor.ready"), ("worker-2", "actor-2.ready"), ("worker-etl", "actor-etl.ready")]


def test_while_redis_does_not_answer_the_actors_stay_as_they_are(tmp_path: Path) -> None:
    own = options(tmp_path)
    specs = children(own)
    assert WantedActors(own, specs, connect("redis://127.0.0.1:1")).specs() == specs
