"""An actor as `lakewright standalone` starts it, which stops at a labeled point of a run on request."""

import os
import sys
from pathlib import Path

from services.actor.__main__ import main
from tests.chaos.worker import Barrier

if __name__ == "__main__":
    sys.exit(main(os.environ, reached=Barrier(Path(sys.argv[1]), sys.argv[2]).reached))
