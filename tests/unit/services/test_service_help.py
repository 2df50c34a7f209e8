"""Settings of a service: its help lists each variable that it reads, and copies have the sizes of the engine."""

from collections.abc import Mapping
from types import ModuleType

import pytest

from actor.formats import registry
from actor.formats.delta.engine import EngineSettings
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from services.actor import __main__ as actor
from services.actor import settings as actor_variables
from services.actor.settings import MIN_COLUMN_CHUNK, MIN_ROW_GROUP, MIN_ROW_GROUP_WITH_VECTORS, actor_settings
from services.actor.spark import engine_options
from services.decider import __main__ as decider
from services.decider import settings as decider_variables
from services.service_help import parse_no_arguments
from shared.errors import InvalidInput
from shared.policy.policy import KIB, MIB
from tests.support.memory_engine import MemoryEngine


class RecordingEnvironment(dict[str, str]):
    """An empty environment that records the names that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.read.add(name)
        return super().get(name, default)


@pytest.mark.parametrize(
    ("service", "module", "also"),
    [("decider", decider_variables, decider.VARIABLES), ("actor", actor_variables, actor.VARIABLES)],
)
def test_the_help_lists_every_variable_that_the_settings_read(
    service: str, module: ModuleType, also: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    environment = RecordingEnvironment()
    read_settings: Mapping[str, object] = vars(module)
    read_settings[f"{service}_settings"](environment)  # type: ignore[operator]
    with pytest.raises(SystemExit):
        parse_no_arguments(["--help"], service=service, settings=module, also=also)
    listed = set(capsys.readouterr().out.split())
    wanted = {name for name in environment.read if name.startswith("LAKEWRIGHT_")}
    assert len(wanted) > 15
    assert wanted - listed == set()


pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

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
