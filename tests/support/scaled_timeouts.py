"""The limits of pytest-timeout follow the machine like all others (see `time_limits`)."""

import os

import pytest

from tests.support.time_limits import VARIABLE, factor, scaled


def pytest_configure(config: pytest.Config) -> None:
    """Measure before pytest-xdist starts its workers, which will disturb each other."""
    factor(getattr(config.option, "numprocesses", None) or 1)


def pytest_report_header() -> str:
    """Say the factor: who compares durations needs it."""
    return f"time limits: times {factor():g} ({VARIABLE})"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Scale pytest-timeout's limit, of the ini file and of markers; one given with `--timeout` is taken as it is."""
    if not any(map(config.pluginmanager.hasplugin, ("timeout", "pytest_timeout"))):
        return
    given = config.getoption("timeout", default=None) is not None or "PYTEST_TIMEOUT" in os.environ
    everybodys = float(config.getini("timeout") or 0)
    for item in items:
        if own := item.get_closest_marker("timeout"):
            seconds, *others = own.args
            item.add_marker(pytest.mark.timeout(scaled(seconds), *others, **own.kwargs), append=False)
        elif everybodys and not given:
            item.add_marker(pytest.mark.timeout(scaled(everybodys)), append=False)
