"""The actions of a commit come from the text that its digest belongs to."""

import json

from actor.formats.delta.commit_file import CommitFile, decode_new_commits


def test_lines_are_distinguished_by_line_feeds_only() -> None:
    """U+2028 and others end a line for Python, and stand in partition values."""
    commit = CommitFile("", '{"add": {"path": "a\u2028b"}}\n{"remove": {"path": "c"}}\n')
    assert commit.actions == [{"add": {"path": "a\u2028b"}}, {"remove": {"path": "c"}}]


def test_commits_that_were_read_together_are_cut_at_bytes_not_at_characters() -> None:
    texts = ['{"add": {"path": "ä"}}\n', "", '{"add": {"path": "\u2028"}}']
    raw = [text.encode() for text in texts]
    said = {"is_known": True, "commits": [{"digest": f"d{n}", "bytes": len(one)} for n, one in enumerate(raw)]}
    found = decode_new_commits(json.dumps(said).encode() + b"\n" + b"".join(raw))
    assert found.commits == tuple(CommitFile(f"d{n}", text) for n, text in enumerate(texts))
    assert json.loads(found.described) == said
