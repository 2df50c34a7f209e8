"""The least sizes of copied row groups are settings of the actor, with the defaults that the engine has."""

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats import registry
from actor.formats.delta.engine import EngineSettings
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from services.actor.settings import MIN_COLUMN_CHUNK, MIN_ROW_GROUP, MIN_ROW_GROUP_WITH_VECTORS, actor_settings
from services.actor.spark import engine_options
from shared.errors import InvalidInput
from shared.policy.policy import KIB, MIB
from tests.support.memory_engine import MemoryEngine

SETTINGS = [
    ({}, DEFAULT_LIMITS),
    ({MIN_ROW_GROUP: "16", MIN_COLUMN_CHUNK: "64"}, CopyLimits(16 * MIB, 64 * KIB)),
    ({MIN_ROW_GROUP: "0", MIN_COLUMN_CHUNK: "0"}, CopyLimits(0, 0)),
    ({MIN_ROW_GROUP_WITH_VECTORS: "8"}, CopyLimits(min_row_group_bytes_with_vectors=8 * MIB)),
]


@pytest.mark.parametrize(("environment", "limits"), SETTINGS)
def test_the_least_sizes_of_copied_row_groups_reach_the_engine(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], limits: CopyLimits
) -> None:
    given: list[EngineSettings] = []

    def start(_spark: object, settings: EngineSettings, *, scratch: str) -> tuple[object, object]:
        given.append(settings)
        return MemoryEngine(), scratch

    monkeypatch.setattr(registry, "start_engine", start)
    monkeypatch.setattr(registry, "EngineSet", list)
    registry.start_engines(None, engine_options(actor_settings(environment)), scratch="file:///s")  # type: ignore[arg-type]
    assert [settings.copy_limits for settings in given] == [limits]


@pytest.mark.parametrize("name", [MIN_ROW_GROUP, MIN_COLUMN_CHUNK, MIN_ROW_GROUP_WITH_VECTORS])
def test_a_size_below_zero_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        actor_settings({name: "-1"})
