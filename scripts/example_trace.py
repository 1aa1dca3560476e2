"""Record the example trace of data/ on an NVIDIA GPU: three prefill steps of 31 layers, as vLLM 0.26 launches them.

    python scripts/example_trace.py data/h200-trace.json.gz

A step builds its prefill rows once and combines them in every C128A layer. The kernels are the row loop and the combine
from rows of this repository, under the names of the released ones; no engine is needed.
"""

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import triton
from torch.profiler import profile, record_function

from c128a import combine, kernel
from c128a.bench import cases, combines
from c128a.bench.profile import CATEGORIES, read, summary
from c128a.case import WINDOW
from c128a.layout import Chunk
from c128a.metadata import build_with_row_loop

TOKENS, LENGTHS, LAYERS, WORKERS = 8192, (32_768, 131_072, 1_048_576), 31, 128


def prepared(length: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """The build and the combine of a step whose requests end at contexts of this length."""
    case = combines.chunk(TOKENS, length)
    build = partial(build_with_row_loop, *cases._Rows(case).arguments(case.width))
    whole = Chunk(0, case.num_requests, case.width, case.width + WINDOW + max(case.query_lens))
    return build, combines.from_rows(combines.inputs_of(case, [whole]).of_chunk(whole), WORKERS)


def main(out: Path) -> None:
    """Record the steps, write them without what the profiler tells of the machine, and print what is read back."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder  # what was compiled before kept its own name
        kernel.row_loop = triton.jit(kernel.row_loop.fn, repr=lambda _: "_build_c128a_topk_metadata_kernel")
        combine.from_rows = triton.jit(combine.from_rows.fn, repr=lambda _: "_combine_topk_swa_indices_kernel")
        steps = [prepared(length) for length in LENGTHS]
        for build, join in steps:  # compiles
            build()
            join()
        torch.cuda.synchronize()
        with profile(record_shapes=True) as profiler:
            for build, join in steps:
                with record_function(f"execute_context_2({TOKENS})_generation_0(0)"):
                    build()
                    combines.repeat([join], LAYERS)
            torch.cuda.synchronize()
        profiler.export_chrome_trace(f"{folder}/trace.json")
        events = json.loads(Path(folder, "trace.json").read_bytes())["traceEvents"]
    events = [event for event in events if event.get("cat") in CATEGORIES]
    out.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode(), mtime=0))
    print(summary(read(io.BytesIO(out.read_bytes()), out.name)))


if __name__ == "__main__":
    if backend.INTERPRET or not backend.HAS_GPU:
        sys.exit("not run: there is no NVIDIA GPU, and interpreted kernels leave no trace")
    main(Path(sys.argv[1]))
