"""The offline optimum: the fewest bytes any rule could rewrite while it never holds more than so many small files.

A dynamic program over merges of neighbours in time. For files of one size that is no restriction, so `equal_files`
is a lower bound for every rule; `neighbours` is the best of its kind for sizes as they come.
"""

from collections.abc import Sequence
from operator import add


def equal_files(commits: int, slots: int, files_per_commit: int = 1) -> int:
    """Return the fewest file rewrites that turn equal files, arriving commit by commit, into one file.

    At no time are there more than `slots` files. The last merge rewrites everything; its first input is built with all
    slots, its second with one less, and so on. A commit's own files stay apart, or are merged together.
    """
    unreachable = files_per_commit * commits * (commits + 1) + 1
    # one[m][n]: cost of one file out of n commits with m slots; parts[m][n]: cost of at most m files out of them.
    one = [[unreachable] * (commits + 1) for _ in range(slots + 1)]
    parts = [[0] + [unreachable] * commits for _ in range(slots + 1)]
    for slot in range(1, slots + 1):
        fewer = parts[slot - 1][::-1]
        for count in range(1, commits + 1):
            # The last commit's files may stay as they are; otherwise a merged file comes first, the rest follows.
            as_it_is = parts[slot - files_per_commit][count - 1] if slot >= files_per_commit else unreachable
            split = min(map(add, one[slot][1:count], fewer[commits - count + 1 : commits]), default=unreachable)
            parts[slot][count] = min(as_it_is, split)
            one[slot][count] = 0 if count * files_per_commit == 1 else parts[slot][count] + count * files_per_commit
            parts[slot][count] = min(parts[slot][count], one[slot][count])
    return one[slots][commits]


def neighbours(sizes: Sequence[int], slots: int, *, output_bytes: int) -> int:
    """Return the least bytes rewritten for files that arrive in this order, merged with neighbours only.

    Outputs reach `output_bytes` and then take no slot; files of that size never do. What is left at the end need not
    be merged. Cubic in the files of one output, so it is meant for samples.
    """
    count = len(sizes)
    sums = [0]
    for size in sizes:
        sums.append(sums[-1] + size)
    ends = [_end(sums, start, output_bytes) for start in range(count)]
    one, parts = _tables(sums, ends, slots)
    unreachable = sums[-1] * (count + 1) + 1
    best = [unreachable] * (count + 1)
    best[0] = 0
    left = unreachable
    for start in range(count):
        if best[start] == unreachable:
            continue
        if sums[start + 1] - sums[start] >= output_bytes:
            best[start + 1] = min(best[start + 1], best[start])
        for stop in range(start + 1, ends[start] + 1):
            if sums[stop] - sums[start] >= output_bytes:
                best[stop] = min(best[stop], best[start] + one[slots][start][stop - start])
            if stop == count:
                left = min(left, best[start] + parts[slots][start][stop - start])
    return min(left, best[count])


def _end(sums: Sequence[int], start: int, output_bytes: int) -> int:
    """Return the stop of the shortest run from `start` that reaches the output, the end if none does."""
    stop = start + 1
    while stop < len(sums) - 1 and sums[stop] - sums[start] < output_bytes:
        stop += 1
    return stop


def _tables(
    sums: Sequence[int], ends: Sequence[int], slots: int
) -> tuple[list[list[list[int]]], list[list[list[int]]]]:
    """Return, per slots, start and length, the cost of one file and of at most that many files."""
    count = len(ends)
    unreachable = sums[-1] * (count + 1) + 1
    one: list[list[list[int]]] = [[]]
    parts: list[list[list[int]]] = [[]]
    fewer = [[unreachable] * count for _ in range(count + 1)]  # by stop and start: what one slot less can do
    for slot in range(1, slots + 1):
        single = [[unreachable, 0] + [unreachable] * (ends[start] - start - 1) for start in range(count)]
        several = [list(row) for row in single]
        now = [[unreachable] * count for _ in range(count + 1)]
        for start in range(count):
            now[start + 1][start] = 0
        for start in range(count - 1 if slot > 1 else -1, -1, -1):
            for stop in range(start + 2, ends[start] + 1):
                split = min(map(add, single[start][1 : stop - start], fewer[stop][start + 1 : stop]))
                now[stop][start] = several[start][stop - start] = split
                single[start][stop - start] = split + sums[stop] - sums[start]
        one.append(single)
        parts.append(several)
        fewer = now
    return one, parts
