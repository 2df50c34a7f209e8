"""The scratch folder of a living actor is left alone, and the next actor removes that of a killed one."""

import subprocess
import sys
from pathlib import Path

from services.actor.scratch import scratch_dir


def test_a_living_owners_folder_is_left_alone_and_a_dead_ones_is_removed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from services.actor.scratch import scratch_dir\n"
        "with scratch_dir(Path(sys.argv[1])) as made: print(made, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        with scratch_dir(tmp_path):
            assert theirs.exists()
        other.kill()
        other.wait()
    assert theirs.exists()
    with scratch_dir(tmp_path) as mine:
        assert list(tmp_path.glob("actor-*")) == [mine]
