"""A full disk where the registry is saved: a change is refused whole, and tables are followed as before."""

import resource
from collections.abc import Iterator

import httpx

from tests.attacks.attack import Attack, AttackWorld, Limit
from tests.attacks.beside import alive
from tests.support.live_decider import WrittenTable
from tests.support.time_limits import scaled
from tests.support.waiting import comes_true


def _run(world: AttackWorld) -> Iterator[Limit]:
    stack = world.stack
    process = stack.decider(LAKEWRIGHT_STATE=(world.folder / "state").as_uri())
    orders, late = (WrittenTable(stack.tables / name, seed=7) for name in ("orders", "late"))
    stack.post("/v1/tables", {"location": str(orders.path), "name": "orders"}).raise_for_status()
    late_one = {"location": str(late.path), "name": "late"}
    free = resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (0, free[1]))
    posted = stack.post("/v1/tables", late_one).status_code
    changed = httpx.patch(f"{stack.url}/v1/tables/orders", json={"tenant": "other"}, timeout=scaled(30)).status_code
    yield Limit("changes are refused", (posted, changed) == (503, 503), f"POST {posted}, PATCH {changed}")
    names = {one["name"]: one["tenant"] for one in stack.get("/v1/tables")["tables"]}
    yield Limit("and are not in force", names == {"orders": "default"}, f"{names}")
    orders.append(commits=2)
    stack.notify(orders.path, orders.version)

    def followed() -> bool:
        return bool(stack.get("/v1/tables/orders")["state"]["version"] == orders.version)

    yield Limit("a commit is followed", bool(comes_true(followed, seconds=30)), f"version {orders.version}")
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, free)
    accepted = bool(comes_true(lambda: stack.post("/v1/tables", late_one).status_code in (200, 201), seconds=30))
    yield Limit("once there is room, a change is made", accepted, "")
    yield alive(world)


ATTACKS = (Attack("a full disk of the saved registry", _run),)
