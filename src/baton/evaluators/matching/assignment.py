"""Pairs two lists, in any order for the most pairs or the most gain, or in their given order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

Pair = tuple[int, int]
"""A position on the left and one on the right, from 0."""

Gain = Callable[[int, int], int]


def assign(
    edges: Mapping[int, Sequence[int]] | Sequence[Sequence[int]],
    room: Sequence[int],
    *,
    supply: Sequence[int] | None = None,
    gain: Gain | None = None,
    likely: Mapping[int, int] | None = None,
) -> list[dict[int, int]]:
    """Assign items on the left to items on the right with the largest possible sum of gains.

    Without ``gain``, every pair gains 1, so as many as possible are assigned. The algorithm is a
    minimum-cost flow by shortest augmenting paths with potentials: J. Edmonds and R. Karp,
    "Theoretical improvements in algorithmic efficiency for network flow problems", 1972. With one
    item of each kind, this is the Hungarian method (H. Kuhn 1955, J. Munkres 1957). If all pairs
    gain the same and all fits are ranges, the ranges that end first choose first, and that is
    already optimal (F. Glover, "Maximum matching in a convex bipartite graph", 1967).

    The time is bounded: at most one search for each item on the left, each O(edges * log items).
    If all gains are the same, nodes seen by a failed search are not visited again, because no later
    path leads through them.

    Args:
        edges: for each kind on the left, the kinds on the right that it fits, the best first. They
            are read on demand, so the sequence may be lazy.
        room: the number of items of each kind on the right.
        supply: the number of items of each kind on the left, by default one of each.
        gain: a whole number above 0 for a pair that fits, the same for all items of a kind.
        likely: pairs to start with, of equal gains. They must not exceed the room on the right.

    Returns:
        for each kind on the left, how many of it go with which kind on the right.
    """
    count = len(edges)
    left_over = [1] * count if supply is None else list(supply)
    net = _Net(edges, list(room), gain)
    for left, right in (likely or {}).items():
        net.give(left, right, 1)
        left_over[left] -= 1
    if gain is not None:
        order: Sequence[int] = range(count)
    elif likely is not None:
        order = [left for left in range(count) if left_over[left]]
    else:
        # First, each kind takes free room, beginning with the kinds that have the fewest fits.
        # Usually this completes the assignment.
        in_ranges = all(isinstance(edges[left], range) for left in range(count))
        order = sorted(
            range(count),
            key=lambda left: edges[left][-1] if in_ranges and edges[left] else len(edges[left]),
        )
        for left in order:
            left_over[left] -= net.take_free(left, left_over[left])
        if in_ranges:
            return net.flow
    for left in order:
        while left_over[left] and net.augment(left):
            left_over[left] -= 1
    return net.flow


class _Net:
    """The assignment so far, and the data for changing it.

    ``of_left`` and ``of_right`` are the potentials. No pair gains more than the sum of its two
    potentials, and an assigned pair gains exactly that (with signs reversed: least cost).
    """

    def __init__(
        self,
        edges: Mapping[int, Sequence[int]] | Sequence[Sequence[int]],
        room: list[int],
        gain: Gain | None,
    ) -> None:
        self.edges, self.room, self.gain = edges, room, gain
        self.flow: list[dict[int, int]] = [{} for _ in range(len(edges))]
        self.owners: list[set[int]] = [set() for _ in room]
        self.dead: set[int] = set()
        self.next_free = list(range(len(room) + 1))
        self.of_right = [0] * len(room)
        self.of_left: dict[int, int] = {}

    def give(self, left: int, right: int, amount: int) -> None:
        """Assign some of the free room."""
        self._move(left, right, amount)
        self.room[right] -= amount

    def take_free(self, left: int, amount: int) -> int:
        """Assign up to ``amount`` of one kind to kinds with room, and return how many."""
        rest = amount
        for right in self._free(self.edges[left]):
            if not rest:
                break
            taken = min(rest, self.room[right])
            self.give(left, right, taken)
            rest -= taken
        return amount - rest

    def _free(self, fits: Sequence[int]) -> Iterator[int]:
        """Yield the kinds that have room. In a range, full ones are skipped at once."""
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
        """Find a place for one more of ``start`` by moving others, and return whether it worked."""
        return self._by_search(start) if self.gain is None else self._by_cost(start, self.gain)

    def _by_search(self, start: int) -> bool:
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

    def _by_cost(self, start: int, gain: Gain) -> bool:
        """Find the cheapest path from ``start`` to room, or to a kind that can stay unassigned."""
        of_left, of_right = self.of_left, self.of_right
        # None of its pairs gains more, and staying unassigned gains nothing.
        of_left[start] = -max((gain(start, right) for right in self.edges[start]), default=0)
        reached_from: dict[int, int] = {}
        gives_up: dict[int, int | None] = {start: None}
        to_left, to_right = {start: 0}, dict[int, int]()
        settled: set[int] = set()
        queue = [(0, start)]
        cheapest: int | None = None
        room: int | None = None
        alone: int | None = None
        while queue:
            far, left = heappop(queue)
            if left in settled:
                continue
            if cheapest is not None and far >= cheapest:
                break
            settled.add(left)
            if cheapest is None or far - of_left[left] < cheapest:
                cheapest, room, alone = far - of_left[left], None, left
            for right in self.edges[left]:
                cost = far - gain(left, right) - of_left[left] - of_right[right]
                if cost >= to_right.get(right, cheapest) or cost >= cheapest:
                    continue
                to_right[right], reached_from[right] = cost, left
                if self.room[right]:
                    cheapest, room, alone = cost, right, None
                for owner in self.owners[right]:
                    if owner not in settled and cost < to_left.get(owner, cheapest):
                        to_left[owner], gives_up[owner] = cost, right
                        heappush(queue, (cost, owner))
        assert cheapest is not None  # noqa: S101 - staying unassigned is always possible
        for left in settled:
            of_left[left] += cheapest - to_left[left]
        for right, cost in to_right.items():
            of_right[right] -= max(cheapest - cost, 0)
        if room is not None:
            self.room[room] -= 1
            self._shift(room, reached_from, gives_up)
        elif alone is not None and (given_up := gives_up[alone]) is not None:
            self._move(alone, given_up, -1)
            self._shift(given_up, reached_from, gives_up)
        return room is not None or alone != start

    def _shift(
        self, end: int, reached_from: dict[int, int], gives_up: dict[int, int | None]
    ) -> None:
        """Move one item along the path that ends at ``end``."""
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


def all_in_order(expected: int, actual: int, same: Callable[[int, int], bool]) -> list[Pair] | None:
    """Pair everything on the left with something on the right, in order, or return ``None``.

    Taking the first item that fits is enough here, for any ``same``.
    """
    pairs: list[Pair] = []
    for place in range(actual):
        if len(pairs) == expected:
            break
        if same(len(pairs), place):
            pairs.append((len(pairs), place))
    return pairs if len(pairs) == expected else None


def longest_common(expected: int, fitting: Sequence[int]) -> list[Pair]:
    """Pair as many items as possible without changing their order.

    ``fitting`` has a number for each item on the right. Its bit ``i`` is set if the item fits
    ``i`` on the left. Bit-parallel (H. Hyyrö, "Bit-parallel LCS-length computation revisited",
    2004): one row of ``expected`` bits for each item on the right.
    """
    every = (1 << expected) - 1
    row = every
    rows = []
    for fits in fitting:
        hits = row & fits
        row = ((row + hits) | (row & ~fits)) & every
        rows.append(row)
    # A 0 bit means that this item on the right made the common sequence longer.
    pairs: list[Pair] = []
    left, right = expected - 1, len(rows) - 1
    while left >= 0 and right >= 0:
        if rows[right] >> left & 1:
            left -= 1
        elif right and not rows[right - 1] >> left & 1:
            right -= 1
        else:
            pairs.append((left, right))
            left, right = left - 1, right - 1
    return pairs[::-1]
