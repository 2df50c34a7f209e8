"""An actor whose first run stops at a labelled point for ever, for tests that kill it just there.

A point is `committed`, of any kind of job, or `deduplicate:committed`, of one kind.
"""

import os
import sys
import threading
from pathlib import Path

from actor.worker import ProgressHook
from services.actor.__main__ import main
from shared.queue.model import Claim


def pause(point: str, note: Path) -> ProgressHook:
    def reached(claim: Claim, at: str) -> None:
        if point in (at, f"{claim.key.kind}:{at}") and not note.exists():
            note.write_text(f"{claim.id} {claim.token}")
            threading.Event().wait()

    return reached


if __name__ == "__main__":
    main(os.environ, reached=pause(sys.argv[1], Path(sys.argv[2])))
