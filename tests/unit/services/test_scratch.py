"""An actor's scratch space goes with it, and a killed actor's goes with the next one."""

import subprocess
import sys
from pathlib import Path

from services.actor.scratch import scratch_dir


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    with scratch_dir(tmp_path) as folder:
        (folder / "spill").write_text("x")
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


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
        assert list(tmp_path.iterdir()) == [mine]
