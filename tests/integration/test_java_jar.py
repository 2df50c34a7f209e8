"""The jar of our Java classes: what the compiler warns of is not packed, and the same sources give the same bytes."""

import os
from pathlib import Path

import pytest

from actor.jvm import own_jar
from services import java_jar
from shared.errors import PermanentError

SOUND = """package io.lakewright.test;
import java.util.List;
public final class Sound {
  public static int size(List<String> names) {
    return names.size();
  }
}
"""
IDLE = SOUND.replace("return", "int idle;\n    return")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only source, of which a jar is made."""
    for module in (own_jar, java_jar):
        monkeypatch.setattr(module, "JAR", tmp_path / "lakewright.jar")
    monkeypatch.setattr(own_jar, "SOURCES", tmp_path)
    return tmp_path / "Sound.java"


def test_the_jar_of_this_checkout_is_that_of_its_sources() -> None:
    """`make setup` compiles it."""
    assert own_jar.own_jar().is_file()


def test_a_jar_is_made_once_and_is_the_same_each_time(source: Path) -> None:
    source.write_text(SOUND)
    assert [java_jar.build(os.environ), java_jar.build(os.environ)] == [True, False]
    made = own_jar.JAR.read_bytes()
    own_jar.JAR.unlink()
    java_jar.build(os.environ)
    assert own_jar.own_jar().read_bytes() == made
    assert [one.name for one in source.parent.iterdir() if one.name.startswith("lakewright")] == ["lakewright.jar"]


@pytest.mark.parametrize("text", [IDLE, SOUND.replace("names.size()", "names")])
def test_neither_a_warning_nor_an_error_of_the_compiler_is_packed(source: Path, text: str) -> None:
    source.write_text(text)
    with pytest.raises(PermanentError, match=r"cannot be compiled:\n(.|\n)*Sound.java"):
        java_jar.build(os.environ)
    assert not own_jar.JAR.exists()
