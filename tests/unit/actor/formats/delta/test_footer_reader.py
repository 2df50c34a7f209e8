"""Footers are read once for the same files."""

from typing import Any, cast

import pytest

from actor.formats.delta.footer_reader import FooterReader
from tests.support.fake_copies import FOOTER, FakeCopies
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import add


class Bench:
    """Two files, and a reader of their footers."""

    def __init__(self) -> None:
        table = FakeTable()
        table.commit(add("x"), add("y"))
        self.scala = FakeCopies(table, (FOOTER, FOOTER), {})
        self.files = live_group(table, "x", "y").inputs
        self.reader = FooterReader(cast("Any", self.scala), table.log())


def test_the_same_footers_are_read_once_for_a_whole_rewrite() -> None:
    bench = Bench()
    assert [one.rows for one in bench.reader.read(bench.files)] == [10, 10]
    assert (len(bench.reader.describe(bench.files).files), len(bench.scala.summaries_read)) == (2, 1)
    assert bench.reader.rows(bench.files) == 20
    bench.reader.describe(bench.files[:1])
    assert len(bench.scala.summaries_read) == 2, "other files are others"


def test_nothing_is_kept_of_a_group_that_is_written() -> None:
    bench = Bench()
    bench.reader.read(bench.files)
    bench.reader.describe(bench.files[:1])
    bench.reader.forget(bench.files[1:])
    assert bench.reader.take(bench.files) is None
    bench.reader.describe(bench.files[:1])
    assert len(bench.scala.summaries_read) == 2, "what holds none of its files stays"
    bench.reader.describe(bench.files)
    assert len(bench.scala.summaries_read) == 3


@pytest.mark.parametrize("odd", [{"obstacle": "damaged"}, {"schema": "", "obstacle": "no_footer"}])
def test_rows_are_those_of_footers_that_say_them_for_certain(odd: dict[str, str]) -> None:
    bench = Bench()
    bench.scala.footers[1] = FOOTER | odd
    assert bench.reader.rows(bench.files) is None
    unusual = Bench()
    unusual.scala.footers[1] = FOOTER | {"obstacle": "int96"}
    assert unusual.reader.rows(unusual.files) == 20
