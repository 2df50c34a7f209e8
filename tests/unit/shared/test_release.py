"""The release that records name is that of the package."""

import tomllib
from pathlib import Path

import pytest

from shared.release import RELEASE, is_newer

ROOT = Path(__file__).resolve().parents[3]


def test_the_release_is_that_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == RELEASE


@pytest.mark.parametrize(("newer", "older"), [("0.1.1", "0.1.0"), ("0.10.0", "0.9.9"), ("1.0", "0.99"), ("0.1.0", "")])
def test_releases_are_ordered_by_their_numbers(newer: str, older: str) -> None:
    assert is_newer(newer, older)
    assert not is_newer(older, newer)
    assert not is_newer(newer, newer)
