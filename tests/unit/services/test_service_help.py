"""The help of a service lists each environment variable that its settings read."""

from collections.abc import Mapping
from types import ModuleType

import pytest

from services.actor import __main__ as actor
from services.actor import settings as actor_variables
from services.decider import __main__ as decider
from services.decider import settings as decider_variables
from services.service_help import parse_no_arguments


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
