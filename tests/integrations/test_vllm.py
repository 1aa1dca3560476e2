"""The stand-in, against stub modules with the released signature. No vLLM is needed, and none is written here.

The stub's caller builds rows the way a released engine does: the width by keyword, slot_mapping and request indices
longer than the batch, the block table of the decode requests only, the result viewed as (rows, 1, width).
"""

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from c128a import reference
from c128a.case import ENTRIES_PER_BLOCK, Case
from c128a.integrations import vllm as stand_in
from c128a.metadata import build_c128a_topk_metadata
from tests.support.builds import batch_of, int32, int64, poisoned

BLOCK = ENTRIES_PER_BLOCK

RELEASED = """
def build_c128a_topk_metadata(
    positions, compress_ratio, num_decode_tokens, token_to_req_indices, block_table, block_size, slot_mapping,
    global_decode_buffer, decode_lens_buffer, prefill_buffer, max_compressed_tokens: int = 8192,
) -> tuple:
    return "released"
"""
CALLER = """
def build(batch, decode_buffer, lens_buffer, prefill_buffer, width):
    return build_c128a_topk_metadata(
        batch.positions, 128, batch.num_decode_tokens, batch.token_to_req_indices, batch.block_table, 2,
        batch.slot_mapping, decode_buffer, lens_buffer, prefill_buffer, max_compressed_tokens=width,
    )
"""


@pytest.fixture
def stub(monkeypatch):
    """Make a fake vLLM of a version whose module holds the given source; return the module."""

    def make(version="0.30.0", source=RELEASED + CALLER):
        for name in ("vllm", "vllm.models", "vllm.models.deepseek_v4", stand_in.MODULE):
            module = ModuleType(name)
            monkeypatch.setitem(sys.modules, name, module)
        sys.modules["vllm"].__version__ = version
        exec(source, vars(module))
        return module

    yield make
    stand_in.uninstall()


def assert_equal_to_the_reference(got, batch, width):
    n = batch.num_decode_tokens
    want = reference.topk_metadata(
        batch.positions, 128, n, batch.token_to_req_indices, batch.block_table, BLOCK, batch.slot_mapping, width
    )
    for name, mine, theirs in zip(("decode", "lens", "prefill"), got, want, strict=True):
        assert torch.equal(mine, theirs), name


def buffers(rows, capacity):
    return poisoned(rows, capacity), poisoned(rows), poisoned(rows, capacity)


@pytest.mark.parametrize(
    ("version", "layout", "capacity", "width", "row_stride"),
    [
        ("0.26.0", None, 256, 256, 256),  # releases of fixed width: full rows
        ("0.28.0", None, 256, 256, 256),
        ("0.27.1", None, 512, 128, 128),
        ("0.30.0", None, 512, 128, 512),
        ("0.31.2rc1", None, 512, 128, 512),
        ("0.27.1", "pitched", 512, 128, 512),
        ("0.25.0", "pitched", 512, 128, 512),  # no layout of an undocumented release is known, so it is named
    ],
)
def test_a_build_through_the_stand_in_equals_the_reference(stub, version, layout, capacity, width, row_stride):
    module = stub(version)
    stand_in.install(layout=layout)
    batch = batch_of(Case.mixed(3, 5, 2048))
    got = module.build(batch, *buffers(8, capacity), width)
    assert_equal_to_the_reference(got, batch, width)
    assert got[0].stride() == got[2].stride() == (row_stride, 1)


def test_it_takes_what_an_engine_passes(stub):
    """Tensors longer than the batch, the table of the decode requests alone, and a view of three dimensions."""
    module = stub()
    stand_in.install()
    batch = batch_of(Case.mixed(3, 5, 2048))
    longer = {
        "token_to_req_indices": torch.cat([batch.token_to_req_indices, int32(*[0] * 8)]),
        "block_table": batch.block_table[:3],
        "slot_mapping": torch.cat([batch.slot_mapping, int64(*[-1] * 8)]),
    }
    got = module.build(SimpleNamespace(**vars(batch) | longer), *buffers(16, 512), 128)
    assert_equal_to_the_reference(got, batch, 128)
    assert got[0].view(3, 1, -1).shape == (3, 1, 128)


def test_a_prefill_batch_has_a_block_table_of_no_rows(stub):
    module = stub()
    stand_in.install()
    batch = batch_of(Case.prefill(6, 2048))
    none = SimpleNamespace(**{**vars(batch), "block_table": batch.block_table[:0]})
    assert_equal_to_the_reference(module.build(none, *buffers(6, 512), 128), batch, 128)


def test_modules_that_imported_it_by_name_are_covered_and_restored(stub, monkeypatch):
    module = stub()
    released = module.build_c128a_topk_metadata
    importer = ModuleType("vllm_importer")
    vars(importer)["renamed"] = released
    monkeypatch.setitem(sys.modules, "vllm_importer", importer)
    assert "places: 2" in stand_in.install()
    assert importer.renamed is module.build_c128a_topk_metadata is not released
    stand_in.uninstall()
    assert importer.renamed is module.build_c128a_topk_metadata is released


def test_a_later_patch_by_someone_else_survives_uninstall(stub):
    module = stub()
    stand_in.install()
    theirs = module.build_c128a_topk_metadata = lambda: "theirs"
    stand_in.uninstall()
    assert module.build_c128a_topk_metadata is theirs


def test_a_second_install_changes_nothing(stub):
    module = stub()
    stand_in.install()
    once = module.build_c128a_topk_metadata
    assert "already" in stand_in.install()
    assert module.build_c128a_topk_metadata is once


@pytest.mark.parametrize(
    "change",
    [
        ("max_compressed_tokens: int = 8192,", "max_compressed_tokens: int = 8192, max_seq_len=None,"),
        ("max_compressed_tokens: int = 8192,", "max_compressed_tokens: int = 4096,"),
        ("max_compressed_tokens: int = 8192,", "*, max_compressed_tokens: int = 8192,"),
        ("compress_ratio, num_decode_tokens,", "num_decode_tokens, compress_ratio,"),
        ("slot_mapping,", ""),
    ],
    ids=["one more", "another default", "keyword only", "another order", "one missing"],
)
def test_a_wrong_signature_is_refused_with_both_signatures_shown(stub, change):
    module = stub(source=RELEASED.replace(*change) + CALLER)
    released = module.build_c128a_topk_metadata
    with pytest.raises(stand_in.RefusedError) as refusal:
        stand_in.install()
    assert module.build_c128a_topk_metadata is released
    bare = str(inspect.signature(released)).replace(": int = ", "=").removesuffix(" -> tuple")
    assert f"vLLM has   {bare}" in str(refusal.value)
    assert "this fits  (positions, compress_ratio, num_decode_tokens, token_to_req_indices" in str(refusal.value)
    assert "max_compressed_tokens=8192)" in str(refusal.value)


def test_the_signature_it_fits_is_that_of_this_package():
    parameters = inspect.signature(build_c128a_topk_metadata).parameters.values()
    positional = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    assert tuple(parameter.name for parameter in positional) == stand_in.PARAMETERS
    assert build_c128a_topk_metadata.__kwdefaults__ == {"layout": "packed"}  # the layout of the report
    assert {p.name: p.default for p in positional if p.default is not p.empty} == stand_in.DEFAULTS


@pytest.mark.parametrize(
    ("version", "source", "reason"),
    [
        ("0.25.0", RELEASED, "release is '0.25.0'.*name the layout"),
        ("0.30.0", "", "has no function build_c128a_topk_metadata"),
    ],
    ids=["undocumented release", "no such function"],
)
def test_what_does_not_fit_is_refused_with_a_reason(stub, version, source, reason):
    stub(version, source)
    with pytest.raises(stand_in.RefusedError, match=reason):
        stand_in.install()


def test_without_vllm_it_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(stand_in.RefusedError, match="cannot be imported"):
        stand_in.install()


def test_an_unknown_layout_is_an_error(stub):
    stub()
    with pytest.raises(ValueError, match="layout is 'rows'"):
        stand_in.install(layout="rows")


@pytest.mark.parametrize(("value", "installed"), [(None, False), ("0", False), ("", False), ("1", True)])
def test_the_plugin_acts_only_when_the_environment_asks(stub, monkeypatch, value, installed):
    module = stub()
    released = module.build_c128a_topk_metadata
    monkeypatch.delenv("C128A_VLLM", raising=False)
    if value is not None:
        monkeypatch.setenv("C128A_VLLM", value)
    stand_in.register()
    assert (module.build_c128a_topk_metadata is not released) is installed


def test_the_plugin_stops_the_engine_rather_than_run_on_something_else(stub, monkeypatch):
    stub(source="")
    monkeypatch.setenv("C128A_VLLM", "1")
    with pytest.raises(stand_in.RefusedError):
        stand_in.register()


def test_the_entry_point_names_the_plugin():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["vllm.general_plugins"] == {"c128a": "c128a.integrations.vllm:register"}


def test_importing_and_installing_need_no_torch():
    code = f"""
import sys
sys.modules.update(torch=None, triton=None)
from types import ModuleType
from c128a.integrations import vllm as stand_in
for name in ("vllm", "vllm.models", "vllm.models.deepseek_v4", stand_in.MODULE):
    sys.modules[name] = ModuleType(name)
sys.modules["vllm"].__version__ = "0.30.0"
exec('''{RELEASED}''', vars(sys.modules[stand_in.MODULE]))
print(stand_in.install())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert "pitched rows, places: 1" in done.stdout
