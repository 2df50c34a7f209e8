"""A foreign writer of a table on S3, as a process of its own: `deltalake`, which commits by conditional puts."""

import argparse
import json

import pyarrow as pa
from deltalake import write_deltalake


def rows(number: int, count: int) -> pa.Table:
    """Return the rows of one commit: ids of its own, two days."""
    ids = list(range(number * count, (number + 1) * count))
    return pa.table({"id": ids, "day": [f"2026-01-0{1 + key % 2}" for key in ids], "value": [f"v{key}" for key in ids]})


def main() -> None:
    """Append as many commits as requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--location", required=True)
    parser.add_argument("--options", required=True, help="storage options as a JSON object")
    parser.add_argument("--commits", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True, help="rows in each commit")
    parser.add_argument("--first", type=int, default=0, help="number of the first commit")
    asked = parser.parse_args()
    options = json.loads(asked.options)
    for number in range(asked.first, asked.first + asked.commits):
        data = rows(number, asked.rows)
        write_deltalake(asked.location, data, mode="append", partition_by=["day"], storage_options=options)


if __name__ == "__main__":
    main()
