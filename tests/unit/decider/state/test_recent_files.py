"""Recent files: the latest action on each, for each table, and no more of them than the bound."""

from decider.state.recent_files import RecentFiles
from shared.table import TableId

ONE, OTHER = TableId("one"), TableId("other")


def test_the_latest_action_on_a_file_is_remembered_for_its_table() -> None:
    recent = RecentFiles()
    recent.update(ONE, [(("a", None), True), (("b", None), True), (("b", None), False)])
    assert (recent.is_live(ONE, ("a", None)), recent.is_live(ONE, ("b", None))) == (True, False)
    assert recent.is_live(OTHER, ("a", None)) is None
    assert recent.is_live(ONE, ("a", "vector")) is None


def test_the_files_that_were_named_longest_ago_are_forgotten_first() -> None:
    recent = RecentFiles(max_files=2)
    recent.update(ONE, [(("a", None), True), (("b", None), True)])
    recent.update(ONE, [(("a", None), False), (("c", None), True)])
    assert [recent.is_live(ONE, (name, None)) for name in "abc"] == [False, None, True]
