"""The best one-to-one matching between kinds of things that come in numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence


def best_matching(
    edges: Sequence[Sequence[int]], supply: Sequence[int], room: Sequence[int]
) -> list[dict[int, int]]:
    """Match as many as can be, each thing at most once.

    ``edges`` gives, for each kind on the left, the kinds on the right that it fits, best ones
    first; ``supply`` and ``room`` say how many there are of each. Returns for each kind on the
    left how many of it go with which kind on the right. A maximum flow: each kind first takes
    what is free, those that fit the fewest before the others; augmenting paths do the rest.
    What a search in vain has seen is never looked at again, as no later path leads through it.
    Where all that fit are ranges, those that end first choose first, and that is the most already
    (F. Glover, "Maximum matching in a convex bipartite graph", 1967).
    """
    net = _Net(edges, list(room))
    left_over = list(supply)
    in_ranges = all(isinstance(fits, range) for fits in edges)
    by_choice = sorted(
        range(len(edges)),
        key=lambda left: edges[left][-1] if in_ranges and edges[left] else len(edges[left]),
    )
    for left in by_choice:
        left_over[left] -= net.take_free(left, left_over[left])
    if in_ranges:
        return net.flow
    for left in by_choice:
        while left_over[left] and net.augment(left):
            left_over[left] -= 1
    return net.flow


class _Net:
    """What goes where so far, and what may still change."""

    def __init__(self, edges: Sequence[Sequence[int]], room: list[int]) -> None:
        self.edges = edges
        self.room = room
        self.flow: list[dict[int, int]] = [{} for _ in edges]
        self.owners: list[set[int]] = [set() for _ in room]
        self.dead: set[int] = set()
        self.next_free = list(range(len(room) + 1))

    def take_free(self, left: int, amount: int) -> int:
        """Give up to ``amount`` of one kind to the kinds that have room; return how many."""
        rest = amount
        for right in self._free(self.edges[left]):
            if not rest:
                break
            taken = min(rest, self.room[right])
            self._move(left, right, taken)
            self.room[right] -= taken
            rest -= taken
        return amount - rest

    def _free(self, fits: Sequence[int]) -> Iterator[int]:
        """Yield those that have room; in a range, the full ones are passed over at once."""
        if not isinstance(fits, range):
            yield from (right for right in fits if self.room[right])
            return
        right = self._free_from(fits.start)
        while right < fits.stop:
            yield right
            right = self._free_from(right + 1)

    def _free_from(self, right: int) -> int:
        """Return the first kind from ``right`` on that has room, or the number of kinds."""
        first = right
        while first < len(self.room) and not self.room[first]:
            first = max(first + 1, self.next_free[first])
        while right < first:
            self.next_free[right], right = first, max(right + 1, self.next_free[right])
        return first

    def augment(self, start: int) -> bool:
        """Find room for one more of ``start`` by moving others; tell whether there was any."""
        reached_from: dict[int, int] = {}
        gives_up: dict[int, int | None] = {start: None}
        queue = deque([start])
        while queue:
            left = queue.popleft()
            for right in self.edges[left]:
                if right in reached_from or right in self.dead:
                    continue
                reached_from[right] = left
                if self.room[right]:
                    self.room[right] -= 1
                    self._shift(right, reached_from, gives_up)
                    return True
                fresh = [owner for owner in self.owners[right] if owner not in gives_up]
                gives_up.update(dict.fromkeys(fresh, right))
                queue.extend(fresh)
        self.dead.update(reached_from)
        return False

    def _shift(
        self, end: int, reached_from: dict[int, int], gives_up: dict[int, int | None]
    ) -> None:
        """Move one along the path that ends at ``end``."""
        right: int | None = end
        while right is not None:
            left = reached_from[right]
            self._move(left, right, 1)
            right = gives_up[left]
            if right is not None:
                self._move(left, right, -1)

    def _move(self, left: int, right: int, amount: int) -> None:
        now = self.flow[left].get(right, 0) + amount
        if now:
            self.flow[left][right] = now
            self.owners[right].add(left)
        else:
            del self.flow[left][right]
            self.owners[right].discard(left)
