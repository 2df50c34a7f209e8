"""Tables of many files of numbers and texts that hardly compress, so that outputs are as large as their inputs."""

import json
import os
import random
from pathlib import Path

from tests.bench.rewrite.tables import BYTES_PER_ROW, DAY, append
from tests.support.delta_tables import actions, newest


def written(path: Path, *, files: int, file_bytes: int, seed: int) -> Path:
    """Write a table of files of about this size, a commit for each, all in one partition.

    They have no dictionaries, because of which groups of small files would not be copied.
    """
    dice = random.Random(seed)
    for _ in range(files):
        append(path, dice, DAY, rows=file_bytes // BYTES_PER_ROW, dictionaries=False)
    return path


def linked(source: Path, table: Path, *, files: int) -> Path:
    """Make a table, in one commit, that shares the first files of another one."""
    commits = [action for version in range(newest(source) + 1) for action in actions(source, version)]
    kept = [action for action in commits if "protocol" in action or "metaData" in action]
    adds = [action for action in commits if "add" in action][:files]
    if len(adds) < files:
        raise ValueError(f"{source} has {len(adds)} files and not {files}")
    (table / "_delta_log").mkdir(parents=True)
    for action in adds:
        path = action["add"]["path"]
        (table / path).parent.mkdir(exist_ok=True)
        os.link(source / path, table / path)
    lines = (f"{json.dumps(action)}\n" for action in [*kept, *adds])
    (table / "_delta_log" / f"{0:020d}.json").write_text("".join(lines))
    return table
