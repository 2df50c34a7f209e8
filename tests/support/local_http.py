"""Requests to servers of this machine, which need no certificates."""

import ssl
from collections.abc import Mapping
from typing import Any

LOCAL: Mapping[str, Any] = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "trust_env": False}
"""Arguments of httpx: each of its clients, and each `httpx.get`, takes a tenth of a second to load those of the system.

A test that waits for an answer does so ten times a second.
"""
