"""Qbeast's library, in a process of its own for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.support.qbeast_process import QbeastProcess, require_qbeast


@pytest.fixture(scope="module")
def qbeast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QbeastProcess]:
    require_qbeast()
    with QbeastProcess(tmp_path_factory.mktemp("qbeast") / "server") as process:
        yield process
