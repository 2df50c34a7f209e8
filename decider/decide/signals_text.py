"""The inputs of a decision about a whole table, in sentences; files and bytes as all records show them."""

from decider.decide.decision import TableSignals
from shared.index.signal import IndexSignal


def describe(signals: TableSignals) -> str:
    """Return the signals of a table as sentences."""
    removals, clustered = signals.removals, signals.clustered
    text = f"Its store still holds {files(removals.files)} with {size(removals.bytes)} that were removed."
    if signals.checkpoint is not None:
        text += f" The newest checkpoint is of version {signals.checkpoint}."
    if (manifests := signals.manifests) is not None:
        text += (
            f" Its snapshot has {manifests.count} manifests with {size(manifests.bytes)}, of which {manifests.needed} "
            "would be enough."
        )
    if (statistics := signals.statistics) is not None:
        text += f" Since the newest statistics of columns, {statistics.changed} of {statistics.rows} rows changed."
    if (deletes := signals.delete_files) is not None:
        text += f" Its snapshot has {files(deletes.count, 'delete ')}, of which {deletes.excess} are to be merged."
        text += f" It has {files(deletes.by_value, 'delete ')} by value." if deletes.by_value else ""
    if clustered is not None:
        text += (
            f" Not clustered: {files(clustered.unclustered_files)} with {size(clustered.unclustered_bytes)}; "
            f"clustered: {size(clustered.clustered_bytes)}."
        )
    if (cells := signals.cells) is not None:
        text += (
            f" New: {files(cells.new_files)} with {size(cells.new_bytes)}; due since the last run: "
            f"{size(cells.left_bytes)}; in cells: {size(cells.files.clustered_bytes)}."
        )
    if signals.twins:
        text += f" It is registered as {', '.join(signals.twins)}, too."
    if signals.index is not None:
        text += _of_index(signals.index)
    return text


def _of_index(index: IndexSignal) -> str:
    text = _state_of(index)
    if index.newest_by_others >= 0:
        text += f" Others rewrote it lately, the last time in version {index.newest_by_others}."
    return f"{text} Alarm: {index.doubled}." if index.doubled else text


def _state_of(index: IndexSignal) -> str:
    if index.refusal:
        return f" The index is not optimized: {index.refusal}"
    fragmentation = index.blocks / index.cubes if index.cubes else 0
    text = (
        f" Its index has {index.blocks} blocks in {index.cubes} cubes (fragmentation {fragmentation:.2f}), "
        f"{index.overhang_blocks} of them overhanging; next: {files(index.next_files)} with {size(index.next_bytes)}."
    )
    if index.hidden_blocks:
        text += f" Samples may miss rows of {index.hidden_blocks} blocks: `lakewright index --revision-rewrite true`."
    return f"{text} {files(index.unindexed_files)} not indexed." if index.unindexed_files else text


def files(number: int, kind: str = "") -> str:
    """Return a number of files of a kind (`fewer `), in words."""
    return f"{number} {kind}file" if number == 1 else f"{number} {kind}files"


def size(count_bytes: float) -> str:
    """Return a number of bytes with a binary unit, in four digits."""
    units = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
    unit, name = next((one for one in units if count_bytes >= 0.9999 * one[0]), units[-1])
    return f"{count_bytes / unit:.4g} {name}"
