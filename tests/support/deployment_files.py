"""What images are built from, and compose.yaml as compose reads it, for tests that need no container."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
IMAGES = {
    "decider": ("decider/Dockerfile", "services.decider"),
    "actor": ("actor/Dockerfile", "services.actor"),
}
"""What each image of ours is built from, and what it runs, by the name of its service in compose.yaml."""


def compose(**variables: str) -> dict[str, Any]:
    """Return the file as compose reads it with these variables set, and the token that it demands."""

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            # A variable without a value is handed on from the shell, or left out.
            return {key: filled(inner) for key, inner in value.items() if inner is not None}
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        text = re.sub(r"\$\{\w+:\?[^}]*\}", "a-token-of-thirty-two-characters", str(value))
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text)

    found = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    services = found["services"]
    return {"services": {name: filled(service) for name, service in services.items()}}


def dockerfile(name: str) -> str:
    """Return what an image is built from."""
    return (ROOT / "services" / IMAGES[name][0]).read_text("utf-8")
