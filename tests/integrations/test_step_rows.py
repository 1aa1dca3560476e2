"""Every layer's combined rows equal the released ones, in a model of the layers; no row of another step is ever given.

The released rows are those of this package's reference and, with a wheel at hand, those of the kernel in it.
"""

import copy
import gc
import os
import random
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import c128a.combine
from c128a import backend, reference
from c128a.bench import peers
from c128a.combine import Chunk, combined_width, prefill_chunks, step_bases
from c128a.integrations import step_rows
from c128a.integrations import vllm as stand_in
from tests.support.builds import int32, poisoned

RELEASED = pytest.mark.parametrize("model", ["reference", "wheel"], indirect=True)
TOPK, WINDOW, IMAGE = 8, 16, 8
OPS, LAYER, CONTEXT = stand_in.COMBINE_MODULE, "vllm.layer", "vllm.forward_context"
ATTENTION = "vllm.models.deepseek_v4.attention"
COMBINE = """
calls = []

def combine_topk_swa_indices(
    topk_indices, query_start_loc, seq_lens, gather_lens, window_size, compress_ratio, topk, M, N, out=None,
    left_visible=None, right_visible=None, max_image_tokens=0,
):
    calls.append(compress_ratio)
    given = topk_indices, query_start_loc, seq_lens, gather_lens, window_size, compress_ratio, topk, M, N
    return rows_of(*given, left_visible, right_visible, max_image_tokens)
"""
MODULES = {
    OPS: COMBINE,
    LAYER: f"from {OPS} import combine_topk_swa_indices as combine",
    CONTEXT: "class Context: pass\n\ncontext = Context()\nget_forward_context = lambda: context",
    ATTENTION: "class DeepseekV4Attention:\n    PREFILL_CHUNK_SIZE = 1",
}


def reference_rows(topk_indices, starts, seq_lens, gather_lens, window, ratio, topk, m, n, left, right, image):
    queries = starts.diff()
    request = torch.arange(len(queries), dtype=torch.int32, device=starts.device).repeat_interleave(queries)
    ends = starts[1:] - starts[0]
    positions = (seq_lens - ends)[request].long() + torch.arange(len(request), device=starts.device)
    bases = [int32(*base) for base in step_bases([Chunk(0, len(queries), n, m)])]
    inputs = (positions, request, seq_lens, gather_lens, *bases, combined_width(topk, window, image))
    options = {"left_visible": left, "right_visible": right} if image else {}
    return reference.combined_rows(*inputs, compress_ratio=ratio if topk else 2**30, window=window, **options)


def rows_of_a_wheel():
    """The kernel of the wheel at hand, with the fill and the arguments of its caller."""
    path, name, _ = peers.PEERS["vllm"]
    if not (file := Path(os.environ.get("C128A_PEERS", "nowhere"), path)).is_file():
        pytest.skip("C128A_PEERS names no folder with the combine of a vLLM wheel")
    kernel = peers._lift(file, name)

    def rows_of(topk_indices, starts, seq_lens, gather_lens, window, ratio, topk, m, n, left, right, image):
        tokens = topk_indices.shape[0]
        out, lens = poisoned(tokens, combined_width(topk, window, image)).fill_(-1), poisoned(tokens)
        visible = (left, right) if image else (topk_indices, topk_indices)
        kernel[(len(seq_lens), 4)](
            out, out.stride(0), lens, topk_indices, topk_indices.stride(0), starts, seq_lens, gather_lens, *visible,
            m, n, TOP_K=topk, COMPRESS_RATIO=max(ratio, 1), WINDOW_SIZE=window, IMAGE_WIDTH=image, PADDED_TOP_K=TOPK,
        )  # fmt: skip
        return out, lens

    return rows_of


class Metadata(SimpleNamespace):
    """The fields that a sliding-window metadata object has in the engine; each step gets a new one."""

    def get_prefill_chunk_plan(self, compress_ratio, prefill_chunk_size):
        lens, queries = self.lens[self.num_decodes :], self.queries[self.num_decodes :]
        options = {"compress_ratio": compress_ratio or 2**30, "window": WINDOW}
        return prefill_chunks(lens, queries, workspace_rows=prefill_chunk_size * 100, **options)


class Engine:
    """Buffers that keep their addresses over the steps, as an engine's do."""

    def __init__(self):
        self.starts, self.seq_lens, self.visible = poisoned(16), poisoned(16), poisoned(2, 4096)

    def step(self, seed, *prefills, image=0):
        draw = random.Random(seed)
        decodes = 0 if prefills else draw.randrange(3)
        queries = [1] * decodes + (list(prefills) or [*draw.choices([0, 1, 5, 17, 40], k=draw.randrange(5)), 5])
        lens = [query + draw.choice([0, 3, 130, 500]) for query in queries]
        starts = [sum(queries[:number]) for number in range(len(queries) + 1)]
        gathered = [q + min(length - q, WINDOW - 1) for q, length in zip(queries, lens, strict=True)]
        self.starts[: len(starts)], self.seq_lens[: len(lens)] = int32(*starts), int32(*lens)
        self.visible.random_(0, IMAGE // 2)
        return Metadata(
            lens=lens, queries=queries, image=image, num_decodes=decodes, num_prefills=len(queries) - decodes,
            num_decode_tokens=decodes, prefill_seq_lens=self.seq_lens[decodes : len(lens)],
            prefill_gather_lens=int32(*gathered[decodes:]), query_start_loc=self.starts[: len(starts)],
            query_start_loc_cpu=torch.tensor(starts, dtype=torch.int32),
            prefill_left_visible=self.visible[0], prefill_right_visible=self.visible[1],
        )  # fmt: skip


@pytest.fixture
def model(request, fake, monkeypatch):
    """A fake vLLM with the stand-in installed, and what it counts."""
    rows_of = rows_of_a_wheel() if getattr(request, "param", "") == "wheel" else reference_rows
    load = fake("0.34.0", others=MODULES)
    layer, ops, launches, launch = load(LAYER), load(OPS), [], c128a.combine.combine_step_indices
    ops.rows_of = rows_of

    def counted(*args, **kwargs):
        launches.append(args[0].shape[0])
        return launch(*args, **kwargs)

    monkeypatch.setattr(c128a.combine, "combine_step_indices", counted)
    stand_in.install()
    return SimpleNamespace(load=load, combine=layer.combine, rows_of=rows_of, calls=ops.calls, launches=launches)


def of_layer(step, ratio=128):
    """The arguments with which a layer of this ratio asks for the rows of each chunk."""
    topk, first, starts = TOPK if ratio else 0, step.num_decodes, step.query_start_loc_cpu
    for start, end, n, m in step.get_prefill_chunk_plan(ratio, 1):
        begin, stop = int(starts[first + start]), int(starts[first + end])
        rows = torch.arange(TOPK, dtype=torch.int32, device=backend.device()).repeat(stop - begin, 1)
        offsets = step.query_start_loc[first + start : first + end + 1]
        lengths = step.prefill_seq_lens[start:end], step.prefill_gather_lens[start:end]
        left, right = step.prefill_left_visible[begin:stop], step.prefill_right_visible[begin:stop]
        visible = (left, right, step.image) if step.image else (None, None, 0)
        yield (rows, offsets, *lengths, WINDOW, ratio, topk, m, n), visible


def assert_released(model, step, ratio=128):
    model.load(CONTEXT).context.attn_metadata = {"c128a": SimpleNamespace(), "window": step, "another window": step}
    for args, (left, right, image) in of_layer(step, ratio):
        out = poisoned(len(args[0]), combined_width(args[6], WINDOW, image)), poisoned(len(args[0]))
        mine = model.combine(*args, out=out, left_visible=left, right_visible=right, max_image_tokens=image)
        for given, wanted in zip(mine, model.rows_of(*args, left, right, image), strict=True):
            assert torch.equal(given, wanted)


@RELEASED
@pytest.mark.parametrize("image", [0, IMAGE], ids=["text", "images"])
def test_each_layer_of_random_steps_gets_the_released_rows_by_one_launch_a_step(model, image):
    engine, tokens = Engine(), []
    for seed in range(4):
        step = engine.step(seed, image=image)
        tokens.append(sum(step.queries) - step.num_decode_tokens)
        for ratio in (0, 128, 4, 128, 128, 0):
            assert_released(model, step, ratio)
    assert model.launches == tokens
    assert set(model.calls) == {4, 0}


@RELEASED
def test_without_the_plan_each_chunk_has_one_launch(model):
    del model.load(ATTENTION).DeepseekV4Attention
    step = Engine().step(0, 40, 40, 0, 17, 40)
    for _ in range(3):
        assert_released(model, step)
    assert len(model.launches) == len(list(of_layer(step))) > 1 and 128 not in model.calls


def test_two_micro_batches_layer_by_layer_and_a_chunk_without_tokens(model):
    steps = [Engine().step(1), Engine().step(2), Engine().step(0, 0)]
    for _ in range(3):
        for step in steps:
            assert_released(model, step)
    assert len(model.launches) == 3


@pytest.mark.parametrize(("error", "tries"), [(RuntimeError("a fault"), 3), (torch.OutOfMemoryError("full"), 1)])
def test_a_fault_leaves_nothing_and_is_said_once(model, monkeypatch, caplog, error, tries):
    tried = []

    def fails(*_):
        tried.append(1)
        raise error

    engine = Engine()
    step = engine.step(3, 5)
    with monkeypatch.context() as patch:
        patch.setattr(step_rows, "make_rows", fails)
        for _ in range(3):
            assert_released(model, step)
    assert len(tried) == tries and model.calls == [128] * 3 and caplog.text.count(str(error)) == 1
    step = step if tries == 3 else engine.step(4, 5)  # no step is tried again after it was out of memory
    assert_released(model, step)
    assert len(model.launches) == 1 and len(model.calls) == 3


def test_other_lengths_another_metadata_and_a_later_forward_pass_are_another_step(model):
    engine, forward = Engine(), model.load(CONTEXT)
    old = engine.step(4, 5, 17)
    assert_released(model, old)
    assert_released(model, engine.step(5, 5, 17))  # in the same buffers
    engine.seq_lens[0] += 200  # even under the object of a step: a change in place is seen
    assert_released(model, old)
    other = copy.copy(old)
    other.prefill_seq_lens = old.prefill_seq_lens + 1
    assert_released(model, other)
    other.prefill_seq_lens.data += 200  # torch does not count this, as when a kernel writes
    before, forward.context = forward.context, forward.Context()
    assert_released(model, other)
    assert len(model.launches) == 5 and before.attn_metadata == forward.context.attn_metadata


def test_rows_die_with_their_step_and_an_id_used_again_is_another_step(monkeypatch):
    monkeypatch.setattr(step_rows, "make_rows", lambda *_: (poisoned(5, 8), poisoned(5)))
    rows = step_rows.StepRows(lambda: context, lambda step: step.get_prefill_chunk_plan(128, 1))
    engine, layers, seen = Engine(), {}, set()
    context = Metadata(attn_metadata=layers)
    for seed in range(30):
        step = layers["one"] = engine.step(seed, 5)
        got = [rows.combine(*args) for args, _ in [*of_layer(step)] * 2]
        assert got[0] is got[1] and len(rows._kept) == 1
        seen.add(id(step))
        del step
        layers.clear()
        gc.collect(0)
        assert not rows._kept
    assert len(seen) < 30


LAYERS = {  # the metadata of a forward pass, and what is said of it
    "no metadata by layer": lambda step: [{"window": step}],
    "0 metadata objects": lambda step: {},
    "2 metadata objects": lambda step: {"a": step, "b": copy.copy(step)},
    "0 metadata objects of the forward": lambda step: {"a": SimpleNamespace(**vars(step) | {"prefill_seq_lens": None})},
    "weak reference": lambda step: {"a": SimpleNamespace(**vars(step))},
}


@pytest.mark.parametrize(("reason", "layers"), LAYERS.items(), ids=LAYERS)
def test_what_does_not_fit_is_done_by_the_released_function_and_said_once(model, caplog, reason, layers):
    step = Engine().step(7, 5)
    model.load(CONTEXT).context.attn_metadata = layers(step)
    ((args, _),) = of_layer(step)
    for _ in range(2):
        assert torch.equal(model.combine(*args)[0], model.rows_of(*args, None, None, 0)[0])
    assert model.calls == [128, 128] and caplog.text.count(reason) == 1


SOURCES = {  # of the combine, and what installing it says
    "0.30": (COMBINE, "combine_topk_swa_indices replaced, places: 2"),
    "0.27": (re.sub(r"out=None,\n.*", "out=None,", COMBINE), "combine_topk_swa_indices replaced"),
    "0.26": (re.sub(r" out=None,\n.*", "", COMBINE), "combine_topk_swa_indices replaced"),
    "another default": (COMBINE.replace("out=None", "out=0"), r"stays, its signature is another: \(topk_.* out=0"),
    "one missing": (re.sub(r" N, out=None,\n.*", "", COMBINE), "stays, its signature is another"),
    "no function": ("combine_topk_swa_indices = 0", "stays, .* does not have it"),
}


@pytest.mark.parametrize(("source", "said"), SOURCES.values(), ids=SOURCES)
def test_install_says_what_became_of_the_combine(fake, source, said):
    load = fake(others=MODULES | {OPS: source})
    layer, released = load(LAYER), load(OPS).combine_topk_swa_indices
    assert re.search(f"build_c128a_topk_metadata replaced.*{said}", stand_in.install())
    stand_in.uninstall()
    assert layer.combine is load(OPS).combine_topk_swa_indices is released
