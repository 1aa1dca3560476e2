"""Times FlashMLA's sparse attention over our index rows, where a FlashMLA can be imported.

    python scripts/flashmla_widths.py --out data/h200-flashmla.json

Decode attention walks a row to lens, not to its width, so the times should not depend on the width. The compressed
entries are the "extra" cache of the call, the sliding window its main one, as DeepSeek-V4 has them. Each width gets the
same ids and lens; outputs are compared before anything is timed. Prefill attention reads the combined rows of a step of
several chunks: made in each chunk, as the releases do it, and once for the whole step.

Exit status: 0 when it ran; 77 with the reason on stderr where it could not (no GPU, no FlashMLA, one that refuses).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from c128a.bench import cases, combines, records, timing
from c128a.bench.provenance import provenance
from c128a.case import CAPACITY, Case
from c128a.combine import combine_step_indices, prefill_chunks
from c128a.width import reachable_widths

NOT_RUN = 77  # the status by which test runners know a skip
MODULES = ("flash_mla", "vllm.third_party.flashmla.flash_mla_interface")
CASES = ((64, 256), (256, 1024))  # decode rows, valid entries of each
HEAD_DIM, VALUE_DIM = 512, 512
TOKEN_BYTES = 584  # 448 fp8 values, 64 bf16 values, 8 bytes of scales
WINDOW, WINDOW_PAGE, ENTRY_PAGE = 128, 64, 2  # tokens; tokens a page; compressed entries a page


def flashmla() -> tuple[ModuleType, str]:
    """The first FlashMLA that can be imported, and its name; raises ImportError that lists why none can."""
    reasons = []
    for name in MODULES:
        try:
            return import_module(name), name
        except (ImportError, AttributeError) as error:  # vLLM's copy looks its operators up while it is imported
            reasons.append(f"{name}: {error}")
    raise ImportError("; ".join(reasons))


def launches(module: ModuleType, rows: int, entries: int, heads: int) -> dict[int, Any]:
    """One call for each width that holds the entries: the same queries, ids and lens, rows of another width."""
    random = torch.Generator(device="cuda").manual_seed(0)
    int32: dict[str, Any] = {"dtype": torch.int32, "device": "cuda"}

    def cache(tokens: int, page: int) -> torch.Tensor:
        # Zero bytes are zero values with the smallest scale: finite, and timing does not depend on them.
        return torch.zeros(-(-tokens // page), page, 1, TOKEN_BYTES, dtype=torch.uint8, device="cuda")

    common: dict[str, Any] = {
        "q": torch.randn(rows, 1, heads, HEAD_DIM, dtype=torch.bfloat16, device="cuda", generator=random),
        "k_cache": cache(rows * WINDOW, WINDOW_PAGE),
        "block_table": None,
        "cache_seqlens": None,
        "head_dim_v": VALUE_DIM,
        "is_fp8_kvcache": True,
        "indices": torch.arange(rows * WINDOW, **int32).view(rows, 1, WINDOW),
        "topk_length": torch.full((rows,), WINDOW, **int32),
        "extra_k_cache": cache(rows * entries, ENTRY_PAGE),
        "extra_topk_length": torch.full((rows,), entries, **int32),
    }
    ids = torch.randperm(rows * entries, device="cuda", generator=random).to(torch.int32).view(rows, entries)
    calls = {}
    for width in (w for w in reachable_widths(CAPACITY) if w >= entries):
        padded = torch.full((rows, 1, width), -1, **int32)
        padded[:, 0, :entries] = ids
        indices = {"extra_indices_in_kvcache": padded, "tile_scheduler_metadata": module.get_mla_metadata()[0]}
        calls[width] = partial(module.flash_mla_with_kvcache, **common, **indices)
    return calls


def measure(module: ModuleType, name: str, heads: int, repeats: int) -> list[cases.Row]:
    """Rows of a record: one a case and width. Raises AssertionError where an output depends on the width."""
    rows = []
    kind = {"sheet": "consumers", "kernel": "flashmla_decode", "variant": f"{name}, {heads} heads", "cache": "warm"}
    for decode, entries in CASES:
        facts = cases.cell_facts(Case.decode(decode, entries * 128)) | kind
        calls = launches(module, decode, entries, heads)
        outputs = {width: call()[0] for width, call in calls.items()}
        for width, output in outputs.items():
            assert torch.equal(output, outputs[CAPACITY]), f"{decode} rows: the output at width {width} differs"
        samples = timing.warm_times(list(calls.values()), repeats=repeats)
        for width, own in zip(calls, samples, strict=True):
            policy = "fixed" if width == CAPACITY else "pow2"
            rows.append(facts | {"width": width, "policy": policy} | timing.summary([own]))
            print(f"{decode:5} rows, lens {entries:5}, width {width:5}: {rows[-1]['us']:8.2f} µs", flush=True)
    return rows


def measure_prefill(module: ModuleType, name: str, heads: int, repeats: int) -> list[cases.Row]:
    """A row of a record for each way to make the rows. Raises AssertionError where an output depends on it."""
    case = Case((256, 128, 512), (32_768, 8_192, 20_000), 0)
    inputs = combines.inputs_of(case, prefill_chunks(case.seq_lens, case.query_lens, workspace_rows=1_200))
    random = torch.Generator(device="cuda").manual_seed(0)
    step, lens = combine_step_indices(*inputs.lengths, *inputs.bases, inputs.out, inputs.lens)
    kind = {"sheet": "consumers", "kernel": "flashmla_prefill", "cache": "warm", "layout": ""}
    calls: dict[str, list[Any]] = {"rows of each chunk": [], "rows of the step": []}
    first = 0
    for chunk in inputs.chunks:
        shape = ((chunk.end - chunk.start) * chunk.workspace_rows, 1, HEAD_DIM)
        kv = torch.randn(shape, dtype=torch.bfloat16, device="cuda", generator=random)
        of_chunk = inputs.of_chunk(chunk)
        last = first + len(of_chunk.positions)
        q = torch.randn(last - first, heads, HEAD_DIM, dtype=torch.bfloat16, device="cuda", generator=random)
        own = (torch.empty_like(of_chunk.out), torch.empty_like(of_chunk.lens))
        released = combines.from_rows(of_chunk._replace(out=own[0], lens=own[1]))()
        for calls_of, (rows, of_rows) in zip(
            calls.values(), (released, (step[first:last], lens[first:last])), strict=True
        ):
            calls_of.append(
                partial(module.flash_mla_sparse_fwd, q, kv, rows[:, None], HEAD_DIM**-0.5, topk_length=of_rows)
            )
        outputs = [calls_of[-1]()[0] for calls_of in calls.values()]
        assert torch.equal(*outputs), f"requests {chunk.start} … {chunk.end - 1}: the output differs"
        first = last
    timed = [partial(combines.repeat, of_form, 1) for of_form in calls.values()]
    rows = []
    for variant, samples in zip(calls, timing.warm_times(timed, repeats=repeats), strict=True):
        facts = cases.cell_facts(case) | kind | {"variant": f"{name}, {heads} heads, {variant}"}
        facts |= {"out_width": step.shape[1], "launches": len(inputs.chunks)}
        rows.append(facts | timing.summary([samples]))
        print(f"prefill, {len(inputs.chunks)} chunks, {variant}: {rows[-1]['us']:8.2f} µs, equal outputs", flush=True)
    return rows


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--heads", type=int, choices=[64, 128], default=64, help="query heads: V4-Flash 64, V4-Pro 128")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, help="write the record here")
    options = parser.parse_args(argv)
    try:
        module, name = flashmla()
    except ImportError as error:
        print(f"not run: no FlashMLA can be imported ({error})", file=sys.stderr)
        return NOT_RUN
    if not torch.cuda.is_available():
        print("not run: FlashMLA needs an NVIDIA GPU, and torch sees none", file=sys.stderr)
        return NOT_RUN
    facts = provenance(" ".join(["python", "scripts/flashmla_widths.py", *sys.argv[1:]]))
    try:
        with timing.device_lock(timeout_s=60):
            rows = measure(module, name, options.heads, options.repeats)
            rows += measure_prefill(module, name, options.heads, options.repeats)
    except (RuntimeError, TypeError) as refused:  # another signature or cache layout than the one written down here
        print(f"not run: {name} refused the call: {refused}", file=sys.stderr)
        return NOT_RUN
    if options.out:
        with records.whole_file(options.out) as file:
            file.write(records.as_text(facts, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
