"""A machine of its own inside this one: namespaces for processes, mounts, network and control groups.

Its first process holds all of it: when that ends, so do all others, and their mounts and networks are gone. Control
groups alone stay, and `close` removes them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.cluster.programs import DEBIAN
from tests.support.time_limits import scaled
from tests.support.waiting import until

GROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
COMMAND_S = 120


class Machine:
    """A machine in `folder`, whose path is the same inside; its programs are Debian's and this machine's own."""

    def __init__(self, folder: Path, *, has_network: bool) -> None:
        """Take the network of this machine if `has_network`, or else have one that leads nowhere."""
        self.folder = folder
        self.name = f"lakewright-{os.getpid()}-{folder.name}"
        self._has_network = has_network
        self._holder: subprocess.Popen[bytes] | None = None
        self._programs: list[subprocess.Popen[bytes]] = []
        self._init = 0

    def start(self) -> None:
        """Start it, with nothing but its first process in it."""
        (self.folder / "log").mkdir(parents=True, exist_ok=True)
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        join = f"{sys.executable} -m tests.cluster.machine join {self.name}"
        spaces = "--mount --pid --cgroup --uts --ipc" + ("" if self._has_network else " --net")
        inside = f"{sys.executable} -m tests.cluster.machine hold {self.folder}"
        script = f"{join} $$ && exec nice -n 19 unshare {spaces} --fork --kill-child {inside}"
        with (self.folder / "log" / "machine.log").open("wb") as log:
            self._holder = subprocess.Popen(["/bin/sh", "-c", script], stdout=log, stderr=log, start_new_session=True)
        until("the machine is there", ready.exists, seconds=30)
        (child,) = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().split()
        self._init = int(child)

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs `arguments` inside."""
        place = ("env", f"--chdir={self.folder}")
        return ["nsenter", "--target", str(self._init), "--all", *place, *arguments]

    def run(self, *arguments: str, text: str | None = None, seconds: float = COMMAND_S) -> str:
        """Run a command inside and return its output; a failure is an AssertionError with its errors."""
        done = subprocess.run(
            self.command(*arguments), input=text, capture_output=True, text=True, timeout=scaled(seconds), check=False
        )
        assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}{done.stdout[-1000:]}"
        return done.stdout

    def start_program(self, name: str, *arguments: str) -> None:
        """Start a program that runs until the machine ends; its output is in `log`."""
        with (self.folder / "log" / f"{name}.log").open("wb") as log:
            self._programs.append(subprocess.Popen(self.command("setsid", *arguments), stdout=log, stderr=log))

    def give_card(self, card: str, other: "Machine") -> None:
        """Move a network card to another machine."""
        subprocess.run(
            ["nsenter", "--target", str(self._init), "--net", "ip", "link", "set", card, "netns", str(other._init)],
            check=True,
        )

    def close(self) -> None:
        """End every process of the machine and remove its control groups."""
        if self._holder is None:
            return
        self._holder.kill()
        for program in self._programs:  # The nsenter of a program that was stopped is still stopped.
            program.send_signal(signal.SIGCONT)
        for ended in (self._holder, *self._programs):
            ended.wait(scaled(30))

        def is_gone() -> bool:
            for place in GROUPS.iterdir():
                for group in sorted((place / self.name).glob("**/"), reverse=True):
                    with suppress(OSError):  # Its processes are ending.
                        group.rmdir()
            return not any((place / self.name).exists() for place in GROUPS.iterdir())

        until("the control groups are gone", is_gone, seconds=30)


def join_groups(name: str, pid: str) -> None:
    """Make control groups of this name and put a process into them."""
    for place in GROUPS.iterdir():
        if place.name == "unified" or not (place / "cgroup.procs").exists():
            continue
        group = place / name
        group.mkdir(exist_ok=True)
        if place.name == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((place / file).read_text())
        (group / "cgroup.procs").write_text(pid)


def hold(folder: Path) -> None:
    """Be the first process of a machine: set its mounts up, and wait for its end."""

    def mount(*arguments: str) -> None:
        subprocess.run(["mount", *arguments], check=True)

    mount("--make-rprivate", "/")
    mount("-t", "proc", "proc", "/proc")
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={DEBIAN / 'usr'}:/usr", "/usr")
    mount("-t", "tmpfs", "tmpfs", "/run")
    Path("/run/lock").mkdir()
    subprocess.run(["umount", "-R", str(GROUPS)], check=True)
    mount("-t", "tmpfs", "tmpfs", str(GROUPS))
    for kind in CONTROLLERS:
        (GROUPS / kind).mkdir()
        mount("-t", "cgroup", "-o", kind, "cgroup", str(GROUPS / kind))
    (GROUPS / "systemd").mkdir()
    mount("-t", "cgroup", "-o", "none,name=systemd", "cgroup", str(GROUPS / "systemd"))
    mount("--make-rshared", "/")  # What a kubelet mounts is seen by its containers.
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["hostname", "node"], check=True)
    (folder / "ready").touch()
    while True:
        # Orphans become children of the first process.
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(1)


def _main(arguments: Sequence[str]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    match arguments:
        case ["join", name, pid]:
            join_groups(name, pid)
        case ["hold", folder]:
            hold(Path(folder))
        case _:
            raise SystemExit("join NAME PID, or hold FOLDER")


if __name__ == "__main__":
    _main(sys.argv[1:])
