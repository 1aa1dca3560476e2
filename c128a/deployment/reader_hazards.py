"""What goes wrong between the rows and the attention kernel that reads them. Torch-free.

A rule looks at a `Setup` and yields findings, or nothing. The reader is the danger: it may keep the row stride and the
width of a captured graph, it may ask for contiguous rows, and it may read past lens.
"""

from __future__ import annotations

from collections.abc import Iterator

from c128a.deployment.serving import Finding, Setup

SM120_LOOSE_ROWS = 64  # tokens; above them FlashInfer's SM120 kernel asks for contiguous rows
ROW_BLOCK = 64  # columns; sparse decode kernels walk a row in blocks of 64, FlashMLA's sm100 head64 kernel asserts it

_HISTORY = "Packed rows are the layout of vLLM 0.27.1 (PR #50004), reverted in 0.28.0 (PR #51318, issue #52448)."


def moving_rows(setup: Setup) -> Iterator[Finding]:
    """Incident 1: packed rows change their stride, a captured graph does not."""
    if setup.layout != "packed" or not setup.adaptive:
        return
    narrow, wide = setup.widths[0], setup.capacity
    if setup.graph == "full" and setup.decode_rows > 1:
        yield Finding(
            "moving-rows",
            "danger",
            1,
            "Rows move under the captured graph",
            f"A full graph replays the row stride of its capture, {wide:,}. In a step of {narrow:,} columns packed "
            f"row 1 starts at element {narrow:,}, and the captured kernel reads it at {wide:,}: every decode row "
            f"after the first gets stale or foreign ids. {_HISTORY}",
            "Pitched rows (vLLM 0.30.0 or later), a fixed width (0.28.0), cudagraph_mode PIECEWISE or NONE, or one "
            f"captured graph for each of the {len(setup.widths)} widths.",
        )
    elif setup.graph == "full":
        yield Finding(
            "one-row",
            "warning",
            1,
            "Right only while a step has one decode row",
            "Row 0 lies at element 0 at any stride, so one sequence without speculative tokens reads right. A second "
            f"decode row would not. {_HISTORY}",
            "Pitched rows, before max_num_seqs or the speculative tokens grow.",
        )
    else:
        mode = "no graph holds" if setup.graph == "eager" else "piecewise graphs leave out"
        yield Finding(
            "packed-outside-graphs",
            "warning" if setup.release else "info",
            1,
            "Right only while attention stays outside the graphs",
            f"The stride of packed rows changes with the batch. Here {mode} the attention kernel, so each launch takes "
            f"the stride of its step. {_HISTORY}",
            "Keep the graph mode, or move to pitched rows and be free to choose it.",
        )


def contiguous_rows(setup: Setup) -> Iterator[Finding]:
    """FlashInfer's SM120 kernel asks for contiguous rows above 64 tokens; narrow pitched rows have gaps."""
    gaps = setup.layout == "pitched" and setup.adaptive
    if setup.consumer == "flashinfer_sm120" and gaps and setup.decode_rows > SM120_LOOSE_ROWS:
        yield Finding(
            "rows-not-contiguous",
            "danger",
            None,
            "The kernel needs contiguous rows",
            f"FlashInfer's SM120 kernel asks for contiguous rows above {SM120_LOOSE_ROWS} tokens. A step can have "
            f"{setup.decode_rows:,} decode rows, and pitched rows narrower than {setup.capacity:,} columns have gaps.",
            "Policy fixed, or an engine that builds decode rows at full width for this kernel; or max_num_seqs × (1 + "
            f"speculative tokens) of at most {SM120_LOOSE_ROWS}.",
        )


def stale_columns(setup: Setup) -> Iterator[Finding]:
    """Incident 11 seen from a graph: the reader keeps the width of its capture, pads end at the width of the step."""
    if setup.layout != "pitched" or not setup.adaptive or setup.graph != "full":
        return
    cause = (
        f"A full graph replays the width of its capture too, {setup.capacity:,} columns. A narrower step writes its -1 "
        "pads up to its own width; the columns after it keep the bytes of earlier steps."
    )
    setting = (
        "Policy fixed, which pads every row to the capacity; cudagraph_mode PIECEWISE or NONE; or a kernel that stops "
        "at lens, as FlashMLA does."
    )
    title = "Lanes past lens may hold ids of an earlier step"
    if setup.consumer == "flashinfer_sm120":
        why = f"{cause} FlashInfer's SM120 kernel reads lanes past lens and takes those bytes for ids."
        yield Finding("stale-columns", "danger", 11, title, why, setting)
    elif setup.consumer == "other":
        why = f"{cause} A kernel that reads past lens takes those bytes for ids."
        yield Finding("stale-columns", "warning", 11, title, why, setting)


def block_of_columns(setup: Setup) -> Iterator[Finding]:
    """Kernels walk a row in blocks of 64 columns: a width that 64 does not divide is refused or overrun."""
    odd = [width for width in setup.widths if width % ROW_BLOCK]
    if not odd:
        return
    listed = ", ".join(f"{width:,}" for width in odd[:3])
    setting = f"A capacity that is a multiple of 128: {-(-setup.capacity // 128) * 128:,}."
    if setup.consumer == "flashmla_sm100":
        why = f"FlashMLA's sm100 head64 kernel asserts width % {ROW_BLOCK} = 0. Reachable here: {listed}."
        yield Finding("width-not-64", "danger", None, "The kernel refuses this width", why, setting)
    else:
        why = (
            f"Sparse decode kernels read a row in blocks of {ROW_BLOCK} columns. At {listed} columns the last block "
            "ends in the next row, and for the last row past the view."
        )
        yield Finding("width-not-64", "warning", None, "The last block of a row runs over its end", why, setting)


def unknown_reader(setup: Setup) -> Iterator[Finding]:
    """A kernel nobody described: what to ask before narrow pitched rows are handed to it."""
    if setup.consumer == "other" and setup.layout == "pitched" and setup.adaptive:
        yield Finding(
            "unknown-reader",
            "info",
            None,
            "Three questions to ask of the kernel",
            "Does it take any row stride, or only contiguous rows? Does it stop at lens, or read on? Which multiple of "
            "columns does it ask for? FlashMLA takes any stride, stops at lens, and asks for 64.",
            "Policy fixed, whatever the answers.",
        )
