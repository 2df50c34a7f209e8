"""The limit of descriptors is raised at the start as far as the system permits: its default is for small programs."""

import resource

WANTED = 65_536
"""Descriptors for thousands of connections and files; the kernel needs memory for those in use only."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit towards WANTED and return what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < aim:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        except (OSError, ValueError):
            return soft  # macOS refuses what its kernel does not grant, whatever the hard limit says.
        return aim
    return aim if soft == resource.RLIM_INFINITY else soft
