"""An actor's engine asks buckets whether their server refuses what exists, which not every one does.

A program of its own, because a process can have one Spark only, and the one of the other tests has no jars for S3.
Prints one JSON object: what was said of each location.
"""

import json
import sys
import tempfile
from pathlib import Path

from actor.formats.delta.engine import DeltaEngine, EngineSettings
from actor.jvm.spark import stop_session
from actor.ports import RewriteRequest
from shared.errors import LakewrightError
from tests.support.delta_lab import mark
from tests.support.s3_race import Jvm
from tests.support.steering import Steering


def main() -> None:
    """Ask each location in turn: nothing is to be rewritten there, so that only the question is put."""
    options, *locations = json.loads(sys.argv[1])
    stated: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        jvm = Jvm(options, Path(folder))
        engine = DeltaEngine(jvm.spark, EngineSettings(allow_s3=True))
        for location in locations:
            try:
                engine.rewrite(RewriteRequest(location, (), mark("job", 1)), Steering())
            except LakewrightError as error:
                stated.setdefault(location, []).append(f"{type(error).__name__}: {error}")
        print(json.dumps(stated))
        stop_session(jvm.spark)


if __name__ == "__main__":
    main()
