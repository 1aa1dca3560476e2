"""What the index rows of each step cost in a run of your own, read from a trace of torch's profiler. Torch-free.

    python -m c128a.bench trace FILE     Chrome JSON as torch.profiler exports it, gzipped or not

The file is read as a stream, and nothing of it is kept. A launch belongs to the step in which the host made it. A step
begins where the trace marks one (MARKS), in a trace without marks at each launch of the builder. A trace
with neither is one step.

What a kernel makes is told by its name. vLLM calls many kernels just `kernel`: the combine from 0.27 on, the builder
from 0.30 on. There the Python function that launched it tells (FUNCTIONS), which the profiler records with its option
with_stack, vLLM's default. Without, 256 programs a request tell a combine, and nothing tells a builder.
"""

from __future__ import annotations

import gzip
import math
import sys
import zlib
from argparse import ArgumentParser
from math import nan
from pathlib import Path
from typing import IO

import ijson
import pandas as pd

from c128a.case import WINDOW

MOST_BYTES = 2**30  # of JSON that are read
MARKS = ("execute_", "ProfilerStep#")  # how the names of a step's marks begin: vLLM's, else torch's
LAYERS = (20, 31)  # C128A layers of V4-Flash and of V4-Pro
KERNELS = {  # what a kernel of this name makes, and the engine and its releases
    "_build_c128a_topk_metadata_kernel": ("builder", "vLLM 0.26 to 0.29"),
    "_combine_topk_swa_indices_kernel": ("combine", "vLLM 0.26, its build for AMD, or SGLang"),
    "_build_flashinfer_mixed_sparse_indices_kernel": ("combine", "vLLM 0.26 to 0.29, FlashInfer"),
    "_init_compressed_attn_metadata_kernel": ("builder", "SGLang"),
    "_dsv4_decode_dense_compressed_indices_and_lens_kernel": ("builder", "TokenSpeed"),
    "_dsv4_build_dense_prefill_local_compressed_indices_kernel": ("builder", "TokenSpeed"),
    "_dsv4_combine_dense_swa_indices_kernel": ("combine", "TokenSpeed"),
    "_row_loop": ("builder", "c128a"),
    "tiled": ("builder", "c128a"),
    "from_rows": ("combine", "c128a"),
    "from_positions": ("combine", "c128a"),
}
UNNAMED, WORKERS = "kernel", 256  # vLLM's name for its kernels, and the programs a request of its combine
FUNCTIONS = {  # what a kernel without a name of its own makes that this function launches
    "build_c128a_topk_metadata": ("builder", "vLLM 0.30 or later"),
    "combine_topk_swa_indices": ("combine", "vLLM 0.27 or later"),
    "build_flashinfer_mixed_sparse_indices": ("combine", "vLLM 0.30 or later, FlashInfer"),
}
CATEGORIES = {"kernel", "cuda_runtime", "cuda_driver", "python_function", "cpu_op", "user_annotation"}
FIELDS = {  # what is kept of a trace until its end, times in microseconds
    "kernels": ["kernel", "start", "us", "correlation", "workers", "variant"],
    "calls": ["correlation", "thread", "called", "call_us"],
    "functions": ["thread", "called", "begin", "length", "function"],
    "fills": ["thread", "called", "columns"],
    "marks": ["vllm", "called"],
}


class _Json:
    """The JSON in a file, gzipped or not, of which at most MOST_BYTES are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        gzipped = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        self.stream, self.left = gzip.GzipFile(fileobj=stream) if gzipped else stream, MOST_BYTES

    def read(self, size: int) -> bytes:
        found = self.stream.read(size)
        self.left -= len(found)
        if self.left < 0:
            raise EOFError(f"it is read up to {MOST_BYTES:,} bytes and is longer")
        return found


def _events(stream: IO[bytes], name: str) -> dict[str, pd.DataFrame]:
    """What is kept of a trace, by FIELDS."""
    kept: dict[str, list[tuple]] = {part: [] for part in FIELDS}
    number = 0
    try:
        for event in ijson.items(_Json(stream), "traceEvents.item", use_float=True):
            number += 1
            if event.get("ph") != "X" or event.get("cat") not in CATEGORIES:
                continue
            category, what, args = event["cat"], event["name"], event.get("args", {})
            start, us, thread = float(event["ts"]), float(event["dur"]), str(event["tid"])
            function = what.rpartition(": ")[2]
            if category == "kernel":
                variant = f"{args.get('registers per thread')}, {args.get('shared memory')}"
                workers, launch = int(args.get("grid", (1, 1, 1))[1]), int(args.get("correlation", -1))
                kept["kernels"].append((sys.intern(what), start, us, launch, workers, variant))
            elif category == "python_function" and function in FUNCTIONS:
                kept["functions"].append((thread, start, start, us, function))
            elif what == "aten::fill_":
                shape = args.get("Input Dims", [[]])[0]
                kept["fills"].append((thread, start, float(shape[1]) if len(shape) == 2 else nan))
            elif category == "user_annotation" and what.startswith(MARKS):
                kept["marks"].append((what.startswith(MARKS[0]), start))
            elif category.startswith("cuda_") and "correlation" in args:
                kept["calls"].append((int(args["correlation"]), thread, start, us))
    except (ijson.JSONError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name}: no whole JSON, after {number:,} events: {str(error).splitlines()[0]}") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: event {number:,} is not as torch.profiler writes it: {error!r}") from None
    if not kept["kernels"]:
        missing = "kernel of a GPU; record it with ProfilerActivity.CUDA" if number else "traceEvents"
        raise ValueError(f"{name}: this is no trace of a GPU by torch.profiler: it holds no {missing}")
    return {part: pd.DataFrame(rows, columns=FIELDS[part]) for part, rows in kept.items()}


def read(stream: IO[bytes], name: str) -> pd.DataFrame:
    """The launches of builders and combines in a trace: a row for each step, kernel, width and compiled variant.

    stream can be rewound; name is for messages. Columns: step (from 1), part (builder, combine, or fill: the -1 before
    a combine that writes no pads), kernel, engine, launches, width (NaN: not told), us (of the GPU), share (of the time
    of all kernels of the step), host_us (in the functions that launch, where the trace has them, else in the launching
    calls alone), layers (that make the same rows anew; NaN: not told), saved_us and saved_host_us (by making them once
    a step). The combine of C4A layers is another variant of the same kernel, and nothing is saved of it.

    Raises ValueError, in one sentence, for what is no whole trace and for one without such a kernel.
    """
    events = _events(stream, name)
    every = events["kernels"].merge(events["calls"].drop_duplicates("correlation"), how="left", on="correlation")
    every["called"], every["thread"] = every["called"].fillna(every["start"]), every["thread"].fillna("")
    every = every.sort_values(["called", "start"], ignore_index=True)
    for part in ("functions", "fills"):
        earlier = events[part].astype({"called": float, "thread": every["thread"].dtype}).sort_values("called")
        every = pd.merge_asof(every, earlier, on="called", by="thread")
    inside = every["called"] < (every["begin"] + every["length"]).fillna(-math.inf)
    by_workers = pd.Series("", every.index).mask(every["workers"] == WORKERS, "combine_topk_swa_indices")
    told_by = every["kernel"].mask(every["kernel"] == UNNAMED, every["function"].where(inside, by_workers))
    every[["part", "engine"]] = pd.DataFrame(KERNELS | FUNCTIONS).T.reindex(told_by).to_numpy()
    fills = every["kernel"].str.contains("FillFunctor", regex=False) & (every["part"].shift(-1) == "combine")
    every["width"] = (every["columns"] - WINDOW).where(fills.shift(1, fill_value=False))
    for column in ("kernel", "engine", "width", "variant"):  # those of the combine that it is for
        every[column] = every[column].mask(fills, every[column].shift(-1))
    every["part"] = every["part"].mask(fills, "fill")
    # The host's time of one call is shared by what it launches: a function by fill and combine, a graph by its kernels.
    host = every["length"].where(inside, every["call_us"]).fillna(0)
    owner = [every["thread"], inside, every["begin"].where(inside, every["correlation"])]
    every["host_us"] = host / host.groupby(owner, dropna=False).transform("size")

    found = every.dropna(subset="part")
    if found.empty:
        wanted = f"{', '.join(KERNELS)} or {UNNAMED}, launched by {', '.join(FUNCTIONS)} or with {WORKERS} programs"
        raise ValueError(f"{name}: none of its {len(every):,} kernels is a builder or a combine: no {wanted} a request")
    marks, builders = events["marks"], found.loc[found["part"] == "builder", ["called", "kernel"]]
    starts = marks.loc[marks["vllm"] == marks["vllm"].max(), "called"].sort_values()
    if marks.empty:
        starts = builders.loc[builders["kernel"].isin(builders["kernel"].head(1)), "called"]
    every["step"] = starts.searchsorted(every["called"], side="right")
    found = found.assign(step=every["step"])
    rows = found.groupby(["step", "part", "kernel", "engine", "variant", "width"], dropna=False, sort=False)
    table = rows.agg(launches=("us", "size"), us=("us", "sum"), host_us=("host_us", "sum")).reset_index()
    table["share"] = table["us"] / table["step"].map(every.groupby("step")["us"].sum())
    # A layer combines its chunks one after another: where layers of two kinds take turns, a run is that of one layer.
    combines = found.loc[found["part"] == "combine", ["step", "variant"]]
    runs = (combines != combines.shift()).any(axis=1).cumsum()
    chunks = combines.groupby(["step", runs]).size().groupby("step").min()
    chunks = chunks.where(combines.groupby("step")["variant"].nunique() > 1)
    table["layers"] = [_layers(*row) for row in zip(table["launches"], table["step"].map(chunks), strict=True)]
    table["layers"] = table["layers"].mask(table["part"] == "builder", 1)
    for column in ("us", "host_us"):
        table[f"saved_{column}"] = table[column] * (1 - 1 / table["layers"])
    return table.assign(step=table["step"].rank(method="dense").astype(int)).drop(columns="variant")


def _layers(launches: int, chunks: float) -> float:
    """The C128A layers whose launches these are, each of so many chunks (NaN: not known)."""
    fit = [one for one in LAYERS if launches % one == 0 and (math.isnan(chunks) or launches == one * chunks)]
    return 1 if launches < LAYERS[0] else min(fit, default=nan)


def summary(table: pd.DataFrame) -> str:
    """What `read` found, in sentences: medians over steps, and what once a step would save."""
    sums = ["launches", "us", "share", "host_us", "saved_us", "saved_host_us"]
    of = table.groupby(["part", "step"])[sums].sum().groupby("part").median()
    said = [
        f"A step makes {row.launches:g} launch{'' if row.launches == 1 else 'es'} of the {part}: "
        f"{row.us:,.1f} µs of the GPU, {row.share:.1%} of all its kernels, and {row.host_us:,.1f} µs of the host."
        for part, row in of.iterrows()
    ]
    gpu, host = of["saved_us"].sum(), of["saved_host_us"].sum()
    if gpu:
        said.append(f"Made once a step, the rows would take {gpu:,.1f} µs less of the GPU, {host:,.1f} of the host.")
    elif table["layers"].isna().any():
        said.append(f"What once a step would save is not told: no {' or '.join(map(str, LAYERS))} layers fit.")
    return " ".join(said)


def main(argv: list[str]) -> int:
    """Read the trace that the arguments name and print what it holds; 2 where it cannot be read."""
    parser = ArgumentParser(prog="python -m c128a.bench trace", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="a trace of torch.profiler: JSON, gzipped or not")
    path = parser.parse_args(argv).file
    try:
        with path.open("rb") as stream:
            table = read(stream, path.name)
        shown = table.assign(share=table["share"].map("{:.1%}".format))
        shown["width"] = table["width"].map("{:.0f}".format, na_action="ignore").fillna("-")
        lines = shown.to_string(index=False, float_format="{:,.1f}".format, na_rep="-")
        print(lines, summary(table), sep="\n\n", flush=True)
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0
