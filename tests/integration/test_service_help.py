"""`--help` of a service describes it and starts nothing; an argument that it does not know is refused."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.stack import lakewright

pytestmark = pytest.mark.e2e


def run(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return lakewright(*arguments, env={**os.environ, "LAKEWRIGHT_DATA_DIR": str(data)})


@pytest.mark.parametrize(
    ("service", "setting"),
    [("decider", "LAKEWRIGHT_ROOTS"), ("actor", "LAKEWRIGHT_SLOTS"), ("standalone", "--data-dir")],
)
def test_help_names_the_settings_and_starts_nothing(service: str, setting: str, tmp_path: Path) -> None:
    helped = run(tmp_path / "data", service, "--help")
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith(f"usage: lakewright {service}")
    assert setting in helped.stdout
    assert helped.stderr == ""
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("service", ["decider", "actor", "standalone"])
def test_an_unknown_argument_is_refused(service: str, tmp_path: Path) -> None:
    refused = run(tmp_path / "data", service, "--port=1")
    assert refused.returncode == 2
    assert "--port=1" in refused.stderr
    assert not (tmp_path / "data").exists()
