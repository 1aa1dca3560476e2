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
from c128a.case import CAPACITY, WINDOW, Case
from c128a.combine import combine_step_indices, prefill_chunks
from c128a.width import reachable_widths

NOT_RUN = 77  # the status by which test runners know a skip
MODULES = ("flash_mla", "vllm.third_party.flashmla.flash_mla_interface")
CASES = ((64, 256), (256, 1024))  # decode rows, valid entries of each
HEAD_DIM, VALUE_DIM = 512, 512
TOKEN_BYTES = 584  # 448 fp8 values, 64 bf16 values, 8 bytes of scales
WINDOW_PAGE, ENTRY_PAGE = 64, 2  # tokens and compressed entries a page
Form = tuple[cases.Row, list[Any]]  # what is timed, and its calls


def flashmla() -> tuple[ModuleType, str]:
    """The first FlashMLA that can be imported, and its name; raises ImportError that lists why none can."""
    reasons = []
    for name in MODULES:
        try:
            return import_module(name), name
        except (ImportError, AttributeError) as error:  # vLLM's copy looks its operators up while it is imported
            reasons.append(f"{name}: {error}")
    raise ImportError("; ".join(reasons))


def decode(module: ModuleType, name: str, heads: int, rows: int, entries: int) -> list[Form]:
    """A call for each width that holds the entries: the same queries, ids and lens, rows of another width."""
    random = torch.Generator(device="cuda").manual_seed(0)
    int32: dict[str, Any] = {"dtype": torch.int32, "device": "cuda"}
    # Zero bytes are zero values with the smallest scale: finite, and timing does not depend on them.
    cache = partial(torch.zeros, dtype=torch.uint8, device="cuda")
    common: dict[str, Any] = {
        "q": torch.randn(rows, 1, heads, HEAD_DIM, dtype=torch.bfloat16, device="cuda", generator=random),
        "k_cache": cache(rows * WINDOW // WINDOW_PAGE, WINDOW_PAGE, 1, TOKEN_BYTES),
        "block_table": None,
        "cache_seqlens": None,
        "head_dim_v": VALUE_DIM,
        "is_fp8_kvcache": True,
        "indices": torch.arange(rows * WINDOW, **int32).view(rows, 1, WINDOW),
        "topk_length": torch.full((rows,), WINDOW, **int32),
        "extra_k_cache": cache(rows * entries // ENTRY_PAGE, ENTRY_PAGE, 1, TOKEN_BYTES),
        "extra_topk_length": torch.full((rows,), entries, **int32),
    }
    ids = torch.randperm(rows * entries, device="cuda", generator=random).to(torch.int32).view(rows, entries)
    facts = cases.cell_facts(Case.decode(rows, entries * 128)) | {"kernel": "flashmla_decode", "variant": name}
    forms: list[Form] = []
    for width in (w for w in reachable_widths(CAPACITY) if w >= entries):
        padded = torch.full((rows, 1, width), -1, **int32)
        padded[:, 0, :entries] = ids
        own = {"extra_indices_in_kvcache": padded, "tile_scheduler_metadata": module.get_mla_metadata()[0]}
        policy = "fixed" if width == CAPACITY else "pow2"
        call = partial(module.flash_mla_with_kvcache, **common, **own)
        forms.append((facts | {"width": width, "policy": policy}, [call]))
    return forms


def prefill(module: ModuleType, name: str, heads: int) -> list[Form]:
    """A call for each chunk by both ways to make the rows of a step: the same queries and entries."""
    case = Case((256, 128, 512), (32_768, 8_192, 20_000), 0)
    inputs = combines.inputs_of(case, prefill_chunks(case.seq_lens, case.query_lens, workspace_rows=1_200))
    random = torch.Generator(device="cuda").manual_seed(0)
    values = partial(torch.randn, dtype=torch.bfloat16, device="cuda", generator=random)
    step, lens = combine_step_indices(*inputs.lengths, *inputs.bases, inputs.out, inputs.lens)
    calls: dict[str, list[Any]] = {"rows of each chunk": [], "rows of the step": []}
    first = 0
    for chunk in inputs.chunks:
        of_chunk = inputs.of_chunk(chunk)
        kv = values((chunk.end - chunk.start) * chunk.workspace_rows, 1, HEAD_DIM)
        q = values(len(of_chunk.positions), heads, HEAD_DIM)
        here = slice(first, first + len(q))
        own = {"out": torch.empty_like(of_chunk.out), "lens": torch.empty_like(of_chunk.lens)}
        forms = combines.from_rows(of_chunk._replace(**own))(), (step[here], lens[here])
        for of_form, (rows, of_rows) in zip(calls.values(), forms, strict=True):
            arguments = (q, kv, rows[:, None], HEAD_DIM**-0.5)
            of_form.append(partial(module.flash_mla_sparse_fwd, *arguments, topk_length=of_rows))
        first = here.stop
    facts = cases.cell_facts(case) | {"kernel": "flashmla_prefill", "layout": "", "out_width": step.shape[1]}
    facts |= {"launches": len(inputs.chunks)}
    return [(facts | {"variant": f"{name}, {form}"}, of_form) for form, of_form in calls.items()]


def measure(forms: list[Form], repeats: int) -> list[cases.Row]:
    """Rows of a record, one a form. Raises AssertionError where the outputs of two forms differ."""
    outputs = [[call()[0] for call in calls] for _, calls in forms]
    for (facts, _), of_form in zip(forms, outputs, strict=True):
        assert all(map(torch.equal, of_form, outputs[-1])), f"the output differs: {facts}"
    rows = []
    timed = timing.warm_times([partial(combines.repeat, calls, 1) for _, calls in forms], repeats=repeats)
    for (facts, _), samples in zip(forms, timed, strict=True):
        rows.append(facts | {"sheet": "consumers", "cache": "warm"} | timing.summary([samples]))
        print(f"{facts['cell']}, width {facts['width']}, {facts['variant']}: {rows[-1]['us']:.2f} µs", flush=True)
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
            of = (module, f"{name}, {options.heads} heads", options.heads)
            sheets = [*(partial(decode, *of, *case) for case in CASES), partial(prefill, *of)]
            rows = [row for forms in sheets for row in measure(forms(), options.repeats)]
    except (RuntimeError, TypeError) as refused:  # another signature or cache layout than the one written down here
        print(f"not run: {name} refused the call: {refused}", file=sys.stderr)
        return NOT_RUN
    if options.out:
        with records.whole_file(options.out) as file:
            file.write(records.as_text(facts, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
