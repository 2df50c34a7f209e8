"""`--help` of a service describes it and starts nothing; an argument that it does not know is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stack import ROOT
from tests.support.time_limits import scaled

pytestmark = pytest.mark.e2e


def lakewright(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "services.cli", *arguments],
        cwd=ROOT, env={**os.environ, "LAKEWRIGHT_DATA_DIR": str(data)},
        capture_output=True, text=True, check=False, timeout=scaled(60),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("service", "setting"),
    [("decider", "LAKEWRIGHT_ROOTS"), ("actor", "LAKEWRIGHT_SLOTS"), ("standalone", "--data-dir")],
)
def test_help_names_the_settings_and_starts_nothing(service: str, setting: str, tmp_path: Path) -> None:
    helped = lakewright(tmp_path / "data", service, "--help")
    assert helped.returncode == 0, helped.stderr
    assert helped.stdout.startswith(f"usage: lakewright {service}")
    assert setting in helped.stdout
    assert helped.stderr == ""
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("service", ["decider", "actor", "standalone"])
def test_an_unknown_argument_is_refused(service: str, tmp_path: Path) -> None:
    refused = lakewright(tmp_path / "data", service, "--port=1")
    assert refused.returncode == 2
    assert "--port=1" in refused.stderr
    assert not (tmp_path / "data").exists()
