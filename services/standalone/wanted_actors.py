"""The actors of the standalone: as many of each group of the queue as its setting `actors` says."""

import contextlib
from collections.abc import Sequence

from redis import Redis, RedisError

from services.decider.settings import parse_groups
from services.settings import GROUPS, QUEUE, EnvironmentReader
from services.standalone.stack import StandaloneOptions, actor
from services.standalone.supervisor import ChildSpec
from shared.policy import parsers
from shared.queue import keys
from shared.queue.decode import text
from shared.queue.keys import in_group
from shared.queue.settings import SETTINGS


class WantedActors:
    """Reads the setting of each group; `children` are those that the standalone starts with."""

    def __init__(self, options: StandaloneOptions, children: Sequence[ChildSpec], redis: Redis) -> None:
        read = EnvironmentReader(options.environment)
        queue, no_groups = read(QUEUE, parsers.group, "default"), dict[str, dict[str, str]]()
        self._options = options
        self._groups = {group: in_group(queue, group) for group in ("", *read(GROUPS, parse_groups, no_groups))}
        self._redis = redis
        self._services = tuple(one for one in children if one.name != "actor")
        self._known = tuple(children)

    def specs(self) -> tuple[ChildSpec, ...]:
        """Return all children that are to run; the same as before while Redis does not answer."""
        with contextlib.suppress(RedisError):
            counts = {group: self._count(queue) for group, queue in self._groups.items()}
            self._known = self._services + tuple(
                actor(self._options, group, number) for group, count in counts.items() for number in range(1, count + 1)
            )
        return self._known

    def _count(self, queue: str) -> int:
        found = text(self._redis.hget(keys.config(queue), "actors") or "")
        return int(found) if found.isdecimal() else SETTINGS["actors"].default
