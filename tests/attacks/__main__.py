"""`make test-attacks`: hostile clients, files and disks, shortened; exits 1 if a limit is not met."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.attacks.attack import Attack, AttackWorld, Limit, all_attacks
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack


def limits(attack: Attack) -> Iterator[Limit]:
    """Carry out one attack in a world of its own; an attack that fails to run is a limit that is not met."""
    with tempfile.TemporaryDirectory(prefix="lw-attack-") as folder, RedisServer(appendfsync="everysec") as redis:
        stack = Stack(Path(folder), redis)
        stack.tables.mkdir()
        try:
            yield from attack.run(AttackWorld(Path(folder), redis, stack))
        except Exception as problem:  # noqa: BLE001 - the others run all the same
            yield Limit(
                "the attack runs to its end", is_met=False, seen=f"{type(problem).__name__}: {problem}"[-2_000:]
            )
        finally:
            stack.close()


def main() -> int:
    """Run, print each limit as met or not, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--only", default="", help="regular expression of names of attacks")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    parser.add_argument("--json", type=Path, help="write the limits to this file")
    asked = parser.parse_args()
    chosen = list(all_attacks(asked.only))
    if asked.list:
        print("\n".join(attack.name for attack in chosen))
        return 0
    found: list[tuple[str, Limit]] = []
    for attack in chosen:
        began_s = time.monotonic()
        print(attack.name, flush=True)
        for limit in limits(attack):
            found.append((attack.name, limit))
            print(limit, flush=True)
        print(f"  {time.monotonic() - began_s:.0f} s", flush=True)
    broken = sum(not limit.is_met for _, limit in found)
    print(f"{len(chosen)} attacks, {len(found)} limits, {broken} not met")
    if asked.json:
        report = [{"attack": name} | asdict(limit) for name, limit in found]
        asked.json.write_text(json.dumps({"limits": report, "broken": broken}, indent=2) + "\n")
    return 1 if broken or not found else 0


if __name__ == "__main__":
    sys.exit(main())
