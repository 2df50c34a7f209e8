"""The balloon leaves nothing, takes what others free, and gives all of it back."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.disk import wrapper_of_namespace
from tests.support.time_limits import scaled

SCRIPT = """
import os, sys
from pathlib import Path
from tests.soak.disk import INSIDE, Balloon, mount_small

os.environ[INSIDE] = "1"
folder = Path(sys.argv[1])
assert mount_small(folder) == ""
(folder / "others").write_bytes(bytes(5_000_000))
balloon = Balloon(folder)

def is_full():
    try:
        (folder / "probe").write_bytes(bytes(1_000))
    except OSError:
        return True
    finally:
        (folder / "probe").unlink(missing_ok=True)
    return False

assert not is_full()
balloon.fill()
assert is_full()
(folder / "others").unlink()
assert not is_full()
balloon.fill()
assert is_full()
balloon.release()
assert not is_full()
print("all of it")
"""


def test_the_balloon_takes_everything_and_gives_it_back(tmp_path: Path) -> None:
    wrapper, refused = wrapper_of_namespace()
    if refused:
        pytest.skip(refused)
    command = [*wrapper, sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=False)
    assert done.stdout.strip() == "all of it", done.stderr
    assert list(tmp_path.iterdir()) == [], "the small disk was private to the process"
