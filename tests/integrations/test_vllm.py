"""The stand-in in a fake vLLM, and under the builder of a wheel where there is one."""

import ast
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

import c128a.combine
import c128a.kernel
import c128a.metadata
from c128a import backend, reference
from c128a.bench import peers
from c128a.case import Case
from c128a.deployment.releases import release_of
from c128a.integrations import step_rows
from c128a.integrations import vllm as stand_in
from c128a.integrations.vllm import KERNEL
from c128a.layout import Chunk
from c128a.width import active_topk_width, reachable_widths
from tests.integrations.fake import BUILDER, wheel
from tests.support.builds import batch_of, int32, int64, poisoned
from tests.support.refused import refused


def assert_equal_to_the_reference(got, batch, widths):
    n = batch.num_decode_tokens
    asked = batch.positions, 128, n, batch.token_to_req_indices, batch.block_table, 2, batch.slot_mapping
    (decode, lens, _), (_, _, prefill) = [reference.topk_metadata(*asked, width) for width in widths]
    for name, mine, theirs in zip(("decode", "lens", "prefill"), got, (decode, lens, prefill), strict=True):
        assert torch.equal(mine, theirs), name


def build(module, batch, capacity, width):
    """Build as an engine does: tensors longer than the batch, and the table of the decode requests alone."""
    passed = {
        "token_to_req_indices": torch.cat([batch.token_to_req_indices, int32(*[0] * 8)]),
        "slot_mapping": torch.cat([batch.slot_mapping, int64(*[-1] * 8)]),
        "block_table": batch.block_table[: batch.num_decode_tokens],
    }
    buffers = poisoned(16, capacity), poisoned(16), poisoned(16, capacity)
    return module.Builder._build_c128a_metadata(None, SimpleNamespace(**vars(batch) | passed), *buffers, width)


@pytest.mark.parametrize(
    ("version", "views", "layout", "capacity", "widths", "strides"),
    [
        ("0.26.0", "fixed", None, 256, (256, 256), (256, 256)),
        ("0.27.1", "packed", None, 512, (128, 128), (128, 128)),
        ("0.27.1", "packed", "pitched", 512, (128, 128), (512, 512)),
        ("0.31.2rc1", "pitched", None, 512, (128, 128), (512, 512)),
        ("0.34.0", "SM120", None, 512, (512, 128), (512, 512)),  # -1 to the end, where the release has old ids
    ],
)
def test_a_build_equals_the_reference_in_the_layout_of_the_release(
    fake, version, views, layout, capacity, widths, strides
):
    module = fake(version, views)()
    assert stand_in.install(layout=layout).startswith(f"vLLM {version}: ")
    for case in (Case.mixed(3, 5, 2048), Case.prefill(6, 2048)):
        batch = batch_of(case)
        got = build(module, batch, capacity, widths[1])
        assert_equal_to_the_reference(got, batch, widths)
        assert (got[0].stride(0), got[2].stride(0)) == strides


@pytest.mark.parametrize(("major", "max_seq_len"), [(9, 32_768), (12, 32_896)], ids=["SM90", "SM120"])
def test_the_builder_of_a_wheel_returns_the_rows_of_the_reference(fake, monkeypatch, major, max_seq_len):
    _, version, text, others = wheel()
    release = release_of(version)
    load = fake(version, builder=text, others=others, major=major)
    monkeypatch.setattr(stand_in, "KERNEL", KERNEL)
    monkeypatch.setenv("C128A_VLLM", "1")
    stand_in.register()
    module = load()
    batch = batch_of(Case.mixed(3, 5, max_seq_len))
    model = SimpleNamespace(max_model_len=131_072, hf_config=SimpleNamespace(index_topk=512, sliding_window=128))
    config = SimpleNamespace(model_config=model, scheduler_config=SimpleNamespace(max_num_batched_tokens=8))
    spec = SimpleNamespace(block_size=256, tokens_per_state=128, compress_ratio=128, num_states=2, storage_block_size=2)
    starts = int32(*batch.query_start_loc)
    step = SimpleNamespace(
        split=(3, len(starts) - 4, 3, 5), num_reqs=len(starts) - 1, num_actual_tokens=8, max_query_len=5,
        max_seq_len=max_seq_len, positions=batch.positions, query_start_loc=starts, seq_lens=None,
        block_table_tensor=batch.block_table, slot_mapping=batch.slot_mapping,
        token_to_req_indices=lambda _: batch.token_to_req_indices,
    )  # fmt: skip
    got = module.DeepseekV4FlashMLAMetadataBuilder(spec, [], config, backend.device()).build(0, step)
    width = active_topk_width(max_seq_len, 128, 1024, policy=release.policy)
    whole = 1024 if major == 12 and release.layout == "pitched" else width
    stride = width if release.layout == "packed" else 1024
    decode, prefill = got.c128a_global_decode_topk_indices, got.c128a_prefill_topk_indices
    assert decode.shape == (3, 1, whole) and decode.stride(0) == prefill.stride(0) == stride
    assert_equal_to_the_reference((decode[:, 0], got.c128a_decode_topk_lens, prefill), batch, (whole, width))


def test_variants_and_decode_split_of_a_wheel_are_those_of_the_table():
    folder, version, text, _ = wheel()
    release, functions = release_of(version), [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    (kernel,) = [function for function in functions if "global_decode_ptr" in ast.unparse(function.args)]
    held = "do_not_specialize" in "".join(map(ast.unparse, kernel.decorator_list))
    assert release.variants == ((1, 1, 1, 2) if held else (1, 3, 4, 5))
    backend_file = folder / "vllm/v1/attention/backend.py"
    split = peers._lift(backend_file, "AttentionMetadataBuilder._init_reorder_batch_threshold")
    for method, tokens in product(("mtp", "dspark", "dflash", "draft_model"), (1, 5)):
        speculative = SimpleNamespace(
            num_speculative_tokens=tokens, parallel_drafting=method in ("dspark", "dflash"),
            max_num_new_slots_for_drafting=int(method == "draft_model"),
        )  # fmt: skip
        parallel = SimpleNamespace(decode_context_parallel_size=1)
        config = SimpleNamespace(speculative_config=speculative, parallel_config=parallel, use_v2_model_runner=True)
        builder = SimpleNamespace(vllm_config=config)
        split(builder, 1, supports_spec_as_decode=True)
        assert builder.reorder_batch_threshold == release.decode_query_len(tokens, method)


def serve(module, device):
    """Build all widths by many row counts, and the rows of a step: all that an engine asks for after its start."""
    rows, lens = torch.empty((2, 8192, 8192), dtype=torch.int32, device=device), poisoned(8192)
    request, long = lens.clone(), torch.zeros(8192, dtype=torch.int64, device=device)
    for width, count in product(reachable_widths(8192), (1, 15, 2100, 6200)):
        for decode in (0, count):
            batch = SimpleNamespace(positions=long[-count:], token_to_req_indices=request, slot_mapping=long)
            batch.block_table = torch.zeros((1, 65), dtype=torch.int32, device=device)[:, decode % 2 :]
            batch.num_decode_tokens = decode
            module.Builder._build_c128a_metadata(None, batch, rows[0], lens, rows[1], width)
        call = step_rows.Call(Chunk(0, 1, 0, 1), count, width, 16, count % 2, None, ())
        lengths = int32(0, count), int32(count), int32(count)
        for visible in (None, (request[:count], request[:count])):
            step_rows.make_rows(call, count, [call.chunk], lengths, visible)


def test_nothing_is_asked_for_that_the_making_of_the_builder_did_not_compile(fake, monkeypatch):
    asked, warmup = set(), c128a.metadata.C128AMetadataBuilder.warmup

    def launcher(variant, *_):
        asked.add(variant)
        return lambda *_: None

    monkeypatch.setattr(c128a.metadata.C128AMetadataBuilder, "warmup", lambda self: asked.update(warmup(self)))
    monkeypatch.setattr(c128a.metadata, "check", c128a.metadata.check.__wrapped__)
    monkeypatch.setattr(c128a.combine, "plan", c128a.combine.plan.__wrapped__)
    for module in (c128a.kernel, c128a.combine):
        monkeypatch.setattr(module, "launcher", launcher)
    module = fake()()
    stand_in.install()
    module.Builder(backend.device())
    compiled = set(asked)
    serve(module, backend.device())
    assert asked == compiled and len(compiled) > 3


@pytest.mark.gpu
def test_no_variant_is_loaded_after_the_builder_is_made(fake):
    module = fake()()
    stand_in.install()
    module.Builder(backend.device())
    loaded = set(c128a.kernel.loaded_variants())
    serve(module, backend.device())
    assert set(c128a.kernel.loaded_variants()) == loaded


def test_modules_that_imported_it_by_name_are_covered_and_restored(fake, monkeypatch):
    module = fake()()
    released, construct = module.build_c128a_topk_metadata, module.Builder.__init__
    importer = ModuleType("vllm_importer")
    importer.renamed = released
    monkeypatch.setitem(sys.modules, "vllm_importer", importer)
    assert "places: 2" in stand_in.install()
    assert importer.renamed is module.build_c128a_topk_metadata is not released
    assert "already" in stand_in.install()
    theirs = module.build_c128a_topk_metadata = lambda: "theirs"
    stand_in.uninstall()
    assert importer.renamed is released and module.Builder.__init__ is construct
    assert module.build_c128a_topk_metadata is theirs  # a later patch by someone else survives


def other(released, another):
    """A fake vLLM whose builder has another text in one place."""
    assert released in BUILDER
    return {"builder": BUILDER.replace(released, another)}


SIGNATURES = {
    "max_seq_len=None": other("= 8192,", "= 8192, max_seq_len=None,"),
    "max_compressed_tokens=4096": other("= 8192,", "= 4096,"),
    r"\*, max_compressed_tokens=8192": other("max_compressed_tokens: int", "*, max_compressed_tokens: int"),
    r"\(positions, num_decode_tokens, compress_ratio": other(
        "compress_ratio, num_decode_tokens,", "num_decode_tokens, compress_ratio,"
    ),
    "block_size, global_decode_buffer": other("block_size, slot_mapping,", "block_size,"),
}
UNFIT = {f"another signature.\n.*vLLM has .*{shown}.*\n.*this fits": call for shown, call in SIGNATURES.items()} | {
    "runs on rocm": {"platform": "rocm"},
    "runs on xpu": {"platform": "xpu"},
    "cannot be imported.*nowhere": {"builder": "import nowhere"},
    "has no function build_c128a_topk_metadata": other("def build_c", "def make_c"),
    "kernel of .* is another": other('return "rows"', 'return not "rows"'),
    r"unknown widths and row strides: \(\(1, 1\)": {"views": "transposed"},
}


@refused({stand_in.RefusedError: UNFIT})
def test_what_does_not_fit_is_refused_before_anything_is_replaced(fake, error, words, call):
    fake(**call)
    with pytest.raises(error, match=words):
        stand_in.install()
    assert not stand_in._places


def test_a_release_that_is_unknown_is_installed_where_all_fits_and_the_log_says_so_but_no_other_layout(fake, caplog):
    fake("0.99.0")
    with pytest.raises(ValueError, match="layout is 'rows'"):
        stand_in.install(layout="rows")
    assert stand_in.install().startswith("vLLM 0.99.0 (unknown, but it fits): ")
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(("value", "installed"), [("0", False), ("", False), ("1", True)])
def test_the_plugin_acts_when_the_environment_asks_and_the_builder_is_imported(fake, monkeypatch, value, installed):
    load, finders = fake(), list(sys.meta_path)
    monkeypatch.setenv("C128A_VLLM", value)
    stand_in.register()
    stand_in.register()  # vLLM may load plugins more than once in a process
    assert len(sys.meta_path) == len(finders) + installed and stand_in.MODULE not in sys.modules
    assert hasattr(load().build_c128a_topk_metadata, "__wrapped__") is installed
    assert sys.meta_path == finders
    stand_in.uninstall()
    stand_in.register()  # the module is there already
    assert hasattr(load().build_c128a_topk_metadata, "__wrapped__") is installed


def test_the_plugin_stops_the_import_rather_than_let_the_engine_run_on_something_else(fake, monkeypatch):
    load = fake(platform="rocm")
    monkeypatch.setenv("C128A_VLLM", "1")
    stand_in.register()
    for _ in range(2):  # an engine that tries again is refused again
        with pytest.raises(stand_in.RefusedError, match="rocm"):
            load()


def test_the_entry_point_names_the_plugin():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["vllm.general_plugins"] == {"c128a": "c128a.integrations.vllm:register"}


def test_loading_the_plugin_imports_no_torch_and_nothing_large():
    code = """
import os, sys
os.environ["C128A_VLLM"] = "1"
from c128a.integrations.vllm import register
register()
print(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "triton", "vllm", "numpy", "pandas"}))
print(sorted(name for name in sys.modules if name.startswith("c128a.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    large, ours = done.stdout.splitlines()
    assert large == "[]" and "deployment" not in ours
