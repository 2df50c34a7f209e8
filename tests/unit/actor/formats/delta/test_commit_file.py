"""The actions of a commit come from the text that its digest belongs to."""

from actor.formats.delta.commit_file import CommitFile


def test_lines_are_distinguished_by_line_feeds_only() -> None:
    """U+2028 and others end a line for Python, and stand in partition values."""
    commit = CommitFile("", '{"add": {"path": "a\u2028b"}}\n{"remove": {"path": "c"}}\n')
    assert commit.actions == [{"add": {"path": "a\u2028b"}}, {"remove": {"path": "c"}}]
