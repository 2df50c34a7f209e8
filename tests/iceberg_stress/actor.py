"""An actor of the stress: it leaves out the self-test of Delta's engine, and stops at a labeled point on request.

`python -m tests.iceberg_stress.actor [POINT NOTE]`.
"""

import os
import sys
from pathlib import Path
from unittest import mock

from actor.formats import registry
from actor.formats.delta.engine import DeltaEngine
from services.actor.__main__ import main
from tests.support.paused_actor import pause

if __name__ == "__main__":
    # It takes as long as the actor then lives.
    mock.patch.object(registry, "start_engine", lambda spark, settings, **_: (DeltaEngine(spark, settings), 0)).start()
    if len(sys.argv) == 1:
        sys.exit(main(os.environ))
    sys.exit(main(os.environ, reached=pause(sys.argv[1], Path(sys.argv[2]))))
