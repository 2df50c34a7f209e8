"""Cubes of a Qbeast index: their place in the tree, from their names alone.

The space of the indexed columns is halved in every dimension at each level. A cube's name has one group of symbols per
level; in a group, each dimension is one bit: the upper half or the lower one.
"""

from dataclasses import dataclass

from shared.errors import Corrupt

ROOT = ""
"""The name of the cube that is the whole space."""

_SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_RANKS = {symbol: rank for rank, symbol in enumerate(_SYMBOLS)}
_DIMENSIONS_PER_SYMBOL = 6

CubeOrder = tuple[int, ...]
"""Sort key of cubes: an ancestor is before its descendants."""


@dataclass(frozen=True, slots=True)
class CubeSpace:
    """The space of a revision; `dimensions` is the number of indexed columns, at least 1."""

    dimensions: int

    @property
    def symbols_per_level(self) -> int:
        """Symbols of a name for each level below the root."""
        return -(-self.dimensions // _DIMENSIONS_PER_SYMBOL)

    def check(self, cube: str) -> None:
        """Raise Corrupt unless this is the name of a cube of this space."""
        if len(cube) % self.symbols_per_level:
            raise Corrupt(f"cube {cube!r}: expected a multiple of {self.symbols_per_level} symbols")
        foreign = next((symbol for symbol in cube if symbol not in _RANKS), None)
        if foreign is not None:
            raise Corrupt(f"cube {cube!r}: {foreign!r} is no symbol of a cube's name")

    def depth(self, cube: str) -> int:
        """Return the number of levels between the root and a cube."""
        return len(cube) // self.symbols_per_level

    def parent(self, cube: str) -> str | None:
        """Return the cube that contains this one, None for the root."""
        return cube[: -self.symbols_per_level] if cube else None

    def path(self, cube: str) -> list[str]:
        """Return a cube and all cubes that contain it, the root last."""
        return [cube[:end] for end in range(len(cube), -1, -self.symbols_per_level)]


def cube_order(cube: str) -> CubeOrder:
    """Return what a cube is compared by; the library compares bits, not characters."""
    return tuple(_RANKS[symbol] for symbol in cube)
