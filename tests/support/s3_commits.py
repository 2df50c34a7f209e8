"""The actor's log store for S3 writes commits one after another, whatever the server does to each of them.

A program of its own, because a process can have one Spark only, and the one of the other tests has no jars for S3.
Prints one JSON object: of each commit `""`, or the name of the Java exception that it ended with.
"""

import json
import sys
import tempfile
from pathlib import Path

from actor.jvm.spark import stop_session
from tests.support.s3_race import Jvm


def main() -> None:
    """Write the commits: options, and the lines of each commit by its URI."""
    options, commits = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        jvm = Jvm({"": options}, Path(folder))
        print(json.dumps({uri: jvm.write(uri, lines) for uri, lines in commits.items()}))
        stop_session(jvm.spark)


if __name__ == "__main__":
    main()
