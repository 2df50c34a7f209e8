"""An actor keeps no class archive unless asked to, and starts without one where it cannot."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.jvm import spark
from services.actor.settings import CLASS_ARCHIVE, actor_settings


def test_there_is_no_class_archive_unless_a_directory_is_named(tmp_path: Path) -> None:
    assert actor_settings({}).archive_dir is None
    assert actor_settings({CLASS_ARCHIVE: str(tmp_path)}).archive_dir == tmp_path


def test_a_directory_that_cannot_be_written_is_no_reason_not_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "_jars", lambda _settings: [])
    file = tmp_path / "a-file"
    file.touch()
    settings = spark.SparkSettings(work_dir=tmp_path, ivy_dir=tmp_path, archive_dir=file / "below")
    assert "Archive" not in spark.configuration(settings, java_home=tmp_path)["spark.driver.extraJavaOptions"]
    usable = spark.SparkSettings(work_dir=tmp_path, ivy_dir=tmp_path, archive_dir=tmp_path / "classes")
    assert "ArchiveClassesAtExit" in spark.configuration(usable, java_home=tmp_path)["spark.driver.extraJavaOptions"]
