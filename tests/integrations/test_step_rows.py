"""Every layer's combined rows equal the released ones, in a model of the layers; no row of another step is ever given.

The released rows are those of this package's reference and, with C128A_PEERS=<folder with vllm/ of a wheel in it>,
those of the kernel in that wheel, lifted by its name and run as its caller does.
"""

import ast
import copy
import gc
import importlib.util
import logging
import os
import random
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

import c128a.combine
from c128a import backend, reference
from c128a.combine import combined_width
from c128a.integrations import step_rows
from c128a.integrations import vllm as stand_in
from c128a.layout import prefill_chunks, step_bases
from tests.integrations.test_vllm import RELEASED
from tests.support.builds import int32, poisoned

TOPK, WINDOW, IMAGE = 8, 16, 8
LAYERS = [0, 128, 4, 128, 4, 128, *[128] * 28, 0]
COMBINE = """
def combine_topk_swa_indices(
    topk_indices, query_start_loc, seq_lens, gather_lens, window_size, compress_ratio, topk, M, N, out=None,
    left_visible=None, right_visible=None, max_image_tokens=0,
):
    calls.append(compress_ratio)
    return rows_of(topk_indices, query_start_loc, seq_lens, gather_lens, window_size, compress_ratio, topk, M, N,
                   left_visible, right_visible, max_image_tokens)
"""
OLDER = COMBINE.replace(" out=None,\n    left_visible=None, right_visible=None, max_image_tokens=0,\n", "\n").replace(
    "left_visible, right_visible, max_image_tokens)", "None, None, 0)"
)


def reference_rows(topk_indices, starts, seq_lens, gather_lens, window, ratio, topk, m, n, left, right, image):
    requests = len(seq_lens)
    lengths = (starts[1:] - starts[:-1]).tolist()
    request = int32(*[number for number, length in enumerate(lengths) for _ in range(length)])
    ends = zip(seq_lens.tolist(), lengths, strict=True)
    positions = torch.tensor([p for end, length in ends for p in range(end - length, end)], dtype=torch.int64)
    bases = [int32(*base) for base in step_bases([c128a.combine.Chunk(0, requests, n, m)])]
    spans = {"left_visible": left, "right_visible": right} if image else {}
    width = combined_width(topk, window, image)
    ratio = ratio if topk else 2**30  # a window-only layer sees no compressed entry
    positions = positions.to(seq_lens.device)
    return reference.combined_rows(
        positions, request, seq_lens, gather_lens, *bases, width, compress_ratio=ratio, window=window, **spans
    )


def lifted_rows(folder, scratch):
    """The released kernel of a wheel, in a file of its own, with its caller's fill and arguments."""
    import triton  # not before c128a.backend

    text = (Path(folder) / "vllm/models/deepseek_v4/common/ops/cache_utils.py").read_text()
    names = {"CombineTopkSwaIndicesKernel": "kernel", "_combine_topk_swa_indices_kernel": None}
    (top,) = [node for node in ast.parse(text).body if getattr(node, "name", None) in names]
    nodes = top.body if isinstance(top, ast.ClassDef) else [top]
    (kernel,) = [node for node in nodes if getattr(node, "name", None) in ("kernel", top.name)]
    kernel.decorator_list, kernel.name = [], "kernel"
    scratch.write_text("import triton.language as tl\n\n\n" + ast.unparse(kernel) + "\n")
    spec = importlib.util.spec_from_file_location("lifted", scratch)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = triton.jit(module.kernel)
    spans = "left_visible_ptr" in [argument.arg for argument in kernel.args.args]

    def rows_of(topk_indices, starts, seq_lens, gather_lens, window, ratio, topk, m, n, left, right, image):
        tokens = topk_indices.shape[0]
        out, lens = poisoned(tokens, combined_width(topk, window, image)).fill_(-1), poisoned(tokens)
        seen = left is not None and image > 0
        visible = [left if seen else topk_indices, right if seen else topk_indices] if spans else []
        extra = {"IMAGE_WIDTH": image if seen else 0} if spans else {}
        run[(len(seq_lens), 4)](
            out, out.stride(0), lens, topk_indices, topk_indices.stride(0), starts, seq_lens, gather_lens, *visible,
            m, n, TOP_K=topk, COMPRESS_RATIO=max(ratio, 1), WINDOW_SIZE=window, **extra,
            PADDED_TOP_K=triton.next_power_of_2(topk_indices.shape[1]),
        )  # fmt: skip
        return out, lens

    return rows_of, spans


class Metadata(SimpleNamespace):
    """The fields that a sliding-window metadata object has in the engine; each step gets a new one."""

    def get_prefill_chunk_plan(self, compress_ratio, prefill_chunk_size):
        lens, queries = self.lens[self.num_decodes :], self.queries[self.num_decodes :]
        chunks = prefill_chunks(
            lens, queries, workspace_rows=prefill_chunk_size * 100, compress_ratio=compress_ratio or 2**30,
            window=WINDOW,
        )  # fmt: skip
        return [(c.start, c.end, c.compressed_rows, c.workspace_rows) for c in chunks]


class Engine:
    """Buffers that keep their addresses over the steps, as an engine's do."""

    def __init__(self):
        self.starts, self.seq_lens, self.visible = poisoned(16), poisoned(16), poisoned(2, 4096)

    def step(self, seed, spans=False, queries=None):
        draw = random.Random(seed)
        decodes = draw.randrange(3) if queries is None else 0
        if queries is None:
            queries = [1] * decodes + [draw.choice([0, 1, 5, 17, 40]) for _ in range(draw.randrange(1, 6))]
        lens = [query + draw.choice([0, 3, 130, 500]) for query in queries]
        starts = [sum(queries[:number]) for number in range(len(queries) + 1)]
        gathered = [q + min(length - q, WINDOW - 1) for q, length in zip(queries, lens, strict=True)]
        self.starts[: len(starts)], self.seq_lens[: len(lens)] = int32(*starts), int32(*lens)
        self.visible.random_(0, IMAGE // 2)
        n = len(queries) - decodes
        return Metadata(
            lens=lens, queries=queries, num_decodes=decodes, num_prefills=n, num_decode_tokens=decodes,
            num_prefill_tokens=starts[-1] - decodes, prefill_seq_lens=self.seq_lens[decodes : len(lens)],
            prefill_gather_lens=int32(*gathered[decodes:]), query_start_loc=self.starts[: len(starts)],
            query_start_loc_cpu=torch.tensor(starts, dtype=torch.int32),
            prefill_left_visible=self.visible[0] if spans else None,
            prefill_right_visible=self.visible[1] if spans else None,
        )  # fmt: skip


@pytest.fixture(params=["reference", "lifted"])
def model(request, monkeypatch, tmp_path):
    """A fake vLLM with the stand-in installed, and what it counts."""
    rows_of, spans = reference_rows, True
    if request.param == "lifted":
        folder = os.environ.get("C128A_PEERS")
        if not folder:
            pytest.skip("C128A_PEERS names no folder with vllm/ of a wheel")
        rows_of, spans = lifted_rows(folder, tmp_path / "lifted.py")
    yield from fake(monkeypatch, rows_of, spans)


@pytest.fixture
def plain(monkeypatch):
    yield from fake(monkeypatch, reference_rows, True)


def fake(monkeypatch, rows_of, spans):
    for name in ("vllm", "vllm.models", "vllm.models.deepseek_v4", stand_in.MODULE, stand_in.COMBINE_MODULE,
                 "vllm.forward_context", "vllm.models.deepseek_v4.attention", "vllm_layer"):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["vllm"].__version__ = "0.34.0"
    exec(RELEASED, vars(sys.modules[stand_in.MODULE]))
    cache_utils, layer = sys.modules[stand_in.COMBINE_MODULE], sys.modules["vllm_layer"]
    calls, launches = [], []
    vars(cache_utils).update(rows_of=rows_of, calls=calls)
    exec(COMBINE if spans else OLDER, vars(cache_utils))
    layer.combine = cache_utils.combine_topk_swa_indices
    context = SimpleNamespace(attn_metadata={})
    sys.modules["vllm.forward_context"].get_forward_context = lambda: context
    attention = sys.modules["vllm.models.deepseek_v4.attention"]
    attention.DeepseekV4Attention = SimpleNamespace(PREFILL_CHUNK_SIZE=1)
    launch = c128a.combine.combine_step_indices

    def counted(*args, **kwargs):
        launches.append(args[0].shape[0])
        return launch(*args, **kwargs)

    monkeypatch.setattr(c128a.combine, "combine_step_indices", counted)
    said = stand_in.install()
    yield SimpleNamespace(
        layer=layer, calls=calls, launches=launches, context=context, rows_of=rows_of, said=said, attention=attention,
        spans=spans, module=cache_utils,
    )  # fmt: skip
    stand_in.uninstall()


def run_layer(model, step, ratio=128, function=None):
    """Rows and lens of each chunk, as a layer of this ratio asks for them."""
    model.context.attn_metadata = {"c128a": SimpleNamespace(), "window": step, "another layer's window": step}
    topk, given = (TOPK if ratio else 0), []
    first, base, starts = step.num_decodes, step.num_decode_tokens, step.query_start_loc_cpu.tolist()
    for start, end, n, m in step.get_prefill_chunk_plan(ratio, 1):
        begin, stop = starts[first + start] - base, starts[first + end] - base
        prefill = torch.arange(TOPK, dtype=torch.int32, device=backend.device()).repeat(stop - begin, 1)
        visible = [None, None]
        if step.prefill_left_visible is not None:
            visible = [t[base + begin : base + stop] for t in (step.prefill_left_visible, step.prefill_right_visible)]
        image = IMAGE if step.prefill_left_visible is not None else 0
        args = (
            prefill, step.query_start_loc[first + start : first + end + 1], step.prefill_seq_lens[start:end],
            step.prefill_gather_lens[start:end], WINDOW, ratio, topk, m, n,
        )  # fmt: skip
        if function is not None:
            given.append(function(*args, *visible, image))
        elif model.spans:
            out = poisoned(stop - begin, combined_width(topk, WINDOW, image)), poisoned(stop - begin)
            named = {"left_visible": visible[0], "right_visible": visible[1], "max_image_tokens": image}
            given.append(model.layer.combine(*args, out=out, **named))
        else:
            given.append(model.layer.combine(*args))
    return given


def assert_released(model, step, given=None):
    given = run_layer(model, step) if given is None else given
    for mine, theirs in zip(given, run_layer(model, step, function=model.rows_of), strict=True):
        assert torch.equal(mine[0], theirs[0]) and torch.equal(mine[1], theirs[1])


@pytest.mark.parametrize("spans", [False, True], ids=["text", "images"])
def test_each_layer_of_three_steps_gets_the_released_rows_by_one_launch_a_step(model, spans):
    if spans and not model.spans:
        pytest.skip("this release knows no images")
    engine = Engine()
    for seed in (11, 22, 33):
        step = engine.step(seed, spans)
        want = {ratio: run_layer(model, step, ratio, model.rows_of) for ratio in (128, 4, 0)}
        model.calls.clear()
        model.launches.clear()
        for ratio in LAYERS:
            for mine, theirs in zip(run_layer(model, step, ratio), want[ratio], strict=True):
                assert torch.equal(mine[0], theirs[0]) and torch.equal(mine[1], theirs[1])
        assert model.launches == [step.num_prefill_tokens]
        assert 128 not in model.calls and {4, 0} == set(model.calls)


def test_random_steps_equal_the_released_ones(model):
    engine = Engine()
    for seed in range(12):
        assert_released(model, engine.step(seed, spans=model.spans and seed % 2 == 1))
    assert len(model.launches) == 12


def test_without_the_plan_each_chunk_has_one_launch(model):
    del model.attention.DeepseekV4Attention
    step = Engine().step(0, queries=[40, 40, 0, 17, 40])
    chunks = len(step.get_prefill_chunk_plan(128, 1))
    for _ in range(3):
        assert_released(model, step)
    assert len(model.launches) == chunks > 1 and 128 not in model.calls


def test_a_chunk_without_tokens(plain):
    assert_released(plain, Engine().step(0, queries=[0]))


def test_two_micro_batches_layer_by_layer(plain):
    steps = [Engine().step(1), Engine().step(2)]
    for _ in range(3):
        for step in steps:
            assert_released(plain, step)
    assert len(plain.launches) == 2


def test_a_fault_in_the_first_launch_leaves_nothing(plain, monkeypatch, caplog):
    def fails(*_args, **_kwargs):
        raise RuntimeError("injected")

    step = Engine().step(3, queries=[5])
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(c128a.combine, "combine_step_indices", fails)
        assert_released(plain, step)
        assert_released(plain, step)
    assert plain.calls == [128, 128] and caplog.text.count("RuntimeError: injected") == 1
    assert_released(plain, step)
    assert len(plain.launches) == 1 and len(plain.calls) == 2


def test_out_of_memory_is_not_tried_again_in_the_step(plain, monkeypatch):
    tries = []

    def fails(*_args, **_kwargs):
        tries.append(1)
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(step_rows, "make_rows", fails)
    step = Engine().step(3, queries=[5])
    for _ in range(3):
        assert_released(plain, step)
    assert len(tries) == 1 and plain.calls == [128] * 3


def test_the_same_buffers_with_other_lengths_are_another_step(plain):
    engine = Engine()
    old = engine.step(4, queries=[5, 17])
    assert_released(plain, old)
    assert_released(plain, engine.step(5, queries=[5, 17]))
    engine.seq_lens[0] += 200  # even under the object of a step: a change in place is seen
    assert_released(plain, old)
    assert len(plain.launches) == 3


def test_rows_die_with_their_step_and_an_id_used_again_is_another_step():
    rows = step_rows.StepRows(dict, list)
    seen = set()
    for _ in range(50):
        step = Metadata()
        entries = rows._entries(step)
        assert not entries and rows._entries(step) is entries
        entries["a call"] = None
        seen.add(id(step))
        del step, entries
        gc.collect(0)
        assert len(rows) == 0
    assert len(seen) < 50


def test_a_copy_of_the_metadata_carries_no_rows_along(plain):
    step = Engine().step(6, queries=[5, 17])
    assert_released(plain, step)
    other = copy.copy(step)
    other.prefill_seq_lens = step.prefill_seq_lens + 1
    assert_released(plain, other)
    assert len(plain.launches) == 2


def no_context():
    raise AssertionError("Forward context is not set.")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda m, _: setattr(sys.modules["vllm.forward_context"], "get_forward_context", no_context), "not set"),
        (lambda m, step: setattr(m, "metadata", [{"window": step}]), "no metadata by layer"),
        (lambda m, step: setattr(m, "metadata", {}), "0 metadata objects"),
        (lambda m, step: setattr(m, "metadata", {"a": step, "b": copy.copy(step)}), "2 metadata objects"),
        (lambda m, step: setattr(m, "metadata", {"a": SimpleNamespace(**vars(step))}), "weak reference"),
        (lambda m, step: setattr(m, "window", 24), "power of two"),
    ],
    ids=["no context", "no dict", "no match", "two matches", "no weak reference", "window"],
)
def test_what_does_not_fit_passes_through_and_is_said_once(plain, caplog, fault, reason):
    step = Engine().step(7, queries=[5])
    fault(plain, step)
    plain.context.attn_metadata = getattr(plain, "metadata", {"window": step})
    slices = step.query_start_loc, step.prefill_seq_lens, step.prefill_gather_lens
    args = poisoned(5, TOPK), *slices, getattr(plain, "window", WINDOW), 128, TOPK, 100, 5
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            rows, _ = plain.layer.combine(*args)
            assert torch.equal(rows, plain.rows_of(*args, None, None, 0)[0])
    assert plain.calls == [128, 128] and caplog.text.count(reason) == 1


def test_install_says_what_became_of_the_combine(plain):
    assert "combine_topk_swa_indices replaced, places: 2" in plain.said
    stand_in.uninstall()
    assert plain.layer.combine is plain.module.combine_topk_swa_indices
    assert not hasattr(plain.layer.combine, "__wrapped__")
    for source, said in ((OLDER, "combine_topk_swa_indices replaced"), ("", "stays, .* does not have it"),
                         (COMBINE.replace("out=None", "out=0"), "stays, its signature is another")):  # fmt: skip
        del plain.module.combine_topk_swa_indices
        exec(source or COMBINE.replace("def combine", "def other"), vars(plain.module))
        line = stand_in.install()
        assert "build_c128a_topk_metadata replaced" in line
        assert re.search(said, line)
        stand_in.uninstall()
        plain.module.combine_topk_swa_indices = None
