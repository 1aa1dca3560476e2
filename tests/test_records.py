"""Records: found, checked, and the figures from elsewhere exactly as their sheets give them."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from c128a import records
from c128a.width import active_topk_width, loop_trips

ROOT = Path(__file__).resolve().parents[1]

FACTS_COMBINE = [  # fact sheet, section 3: 8,192 tokens, per C128A layer
    (32_768, 90.6, 13.2),
    (131_072, 97.9, 40.2),
    (1_048_576, 210.6, 210.6),
]
BASELINE_BUILDER = [  # baseline sheet: decode, prefill, length, row loop fixed, adaptive, prototype, fill
    (1, 0, 32_768, 6.2, 2.23, 1.68, 1.09),
    (1, 0, 1_048_576, 6.3, 6.30, 1.71, 1.05),
    (32, 0, 32_768, 6.5, 2.28, 1.61, 1.05),
    (32, 0, 1_048_576, 6.6, 6.50, 2.07, 1.32),
    (256, 0, 32_768, 7.7, 2.50, 1.73, 1.14),
    (256, 0, 1_048_576, 7.7, 7.45, 4.02, 2.92),
    (1024, 0, 32_768, 16.4, 3.74, 2.01, 1.30),
    (1024, 0, 1_048_576, 19.0, 19.09, 14.15, 8.53),
    (0, 2048, 32_768, 17.4, 2.54, 1.88, 1.56),
    (0, 8192, 4_096, 62.0, 6.30, 2.55, 2.06),
    (0, 8192, 32_768, 62.3, 6.30, 3.46, 2.99),
    (0, 8192, 131_072, 62.1, 9.07, 8.96, 8.53),
    (0, 8192, 1_048_576, 62.1, 61.9, 64.0, 58.8),
    (64, 4096, 32_768, 34.0, 3.80, 2.55, 2.06),
]
BASELINE_COMBINE = [  # baseline sheet: tokens, length, released, prototype, fill
    (2048, 8_192, 4.8, 2.5, 2.0),
    (2048, 32_768, 5.9, 3.0, 2.4),
    (2048, 131_072, 10.1, 4.8, 3.8),
    (2048, 1_048_576, 58.3, 21.4, 16.4),
    (8192, 8_192, 11.2, 4.1, 3.2),
    (8192, 32_768, 13.2, 5.3, 4.2),
    (8192, 131_072, 40.5, 12.9, 9.8),
    (8192, 1_048_576, 209.8, 79.6, 59.8),
]


@pytest.fixture(scope="module")
def elsewhere():
    return records.load("elsewhere")


def test_elsewhere_says_that_it_is_from_elsewhere_and_from_where(elsewhere):
    assert elsewhere.elsewhere
    assert elsewhere.title == "figures from elsewhere, NVIDIA H200"
    assert "fact sheet" in elsewhere.provenance["source"] and "baseline sheet" in elsewhere.provenance["source"]
    assert {row["sheet"] for row in elsewhere.rows} == set(elsewhere.provenance["sheets"])


@pytest.mark.parametrize(("length", "fixed", "adaptive"), FACTS_COMBINE, ids=["32k", "131k", "1M"])
def test_downstream_combine_figures_are_those_of_the_fact_sheet(elsewhere, length, fixed, adaptive):
    at = {"sheet": "consumers", "kernel": "combine", "prefill": 8192, "max_seq_len": length}
    assert [row["us"] for row in elsewhere.where(variant="from_rows_fixed", **at)] == [fixed]
    assert [row["us"] for row in elsewhere.where(variant="from_rows_adaptive", **at)] == [adaptive]


def test_other_downstream_figures_are_those_of_the_fact_sheet(elsewhere):
    consumers = {"sheet": "consumers"}
    assert [row["us"] for row in elsewhere.where(kernel="flashmla_decode", **consumers)] == [
        57.07,
        57.03,
        185.48,
        185.29,
    ]
    assert [row["us"] for row in elsewhere.where(kernel="builder", prefill=8192, **consumers)] == [62.3, 6.5]
    assert [row["us"] for row in elsewhere.where(kernel="builder", decode=64, **consumers)] == [6.5, 2.4]


@pytest.mark.parametrize("sheet_row", BASELINE_BUILDER, ids=lambda r: f"{r[0]}-decode-{r[1]}-prefill-at-{r[2]}")
def test_builder_figures_are_those_of_the_baseline_sheet(elsewhere, sheet_row):
    decode, prefill, length, *figures = sheet_row
    variants = ("row_loop_fixed", "row_loop_adaptive", "tiled_prototype", "fill")
    found = elsewhere.where(sheet="builder", decode=decode, prefill=prefill, max_seq_len=length)
    assert [(row["variant"], row["us"]) for row in found] == list(zip(variants, figures, strict=True))


@pytest.mark.parametrize("sheet_row", BASELINE_COMBINE, ids=lambda r: f"{r[0]}-tokens-at-{r[1]}")
def test_combine_figures_are_those_of_the_baseline_sheet(elsewhere, sheet_row):
    tokens, length, *figures = sheet_row
    variants = ("from_rows_adaptive", "from_positions_prototype", "fill")
    found = [
        (row["variant"], row["us"])
        for row in elsewhere.where(sheet="combine", prefill=tokens, max_seq_len=length)
        if row["variant"] in variants
    ]
    assert found == list(zip(variants, figures, strict=True))


def test_the_remaining_single_figures_are_those_of_the_sheets(elsewhere):
    assert [row["us"] for row in elsewhere.where(kernel="empty")] == [0.82]
    assert [row["us"] for row in elsewhere.where(variant="from_positions_prototype_live_prefix")] == [70.7]
    assert [(row["us_low"], row["us_high"]) for row in elsewhere.where(kernel="host")] == [
        (27, 37),
        (11, 11),
        (5, 5),
        (19, 19),
    ]
    assert [row["compiled_variants"] for row in elsewhere.where(sheet="variants")] == [1, 3, 4, 5]
    packed = elsewhere.where(sheet="frozen", layout="packed")
    assert [row["max_seq_len"] for row in packed] == [300_000, 32_768, 8_192]
    assert all(row["relative_error_low"] == [0, 0.03, 0, 0] for row in packed)
    assert all(row["relative_error_high"] == [0, 0.08, 0, 0] for row in packed)
    pitched = elsewhere.where(sheet="frozen", layout="pitched")
    assert len(pitched) == 3 and all(row["relative_error_high"] == [0, 0, 0, 0] for row in pitched)


def test_every_width_and_trip_count_of_elsewhere_follows_from_its_length(elsewhere):
    timed = [row for row in elsewhere.rows if "width" in row]
    assert len(timed) > 90
    for row in timed:
        assert row["width"] == active_topk_width(row["max_seq_len"], 128, row["capacity"], policy=row["policy"]), row
        assert "trips" not in row or row["trips"] == loop_trips(row["width"]), row


def test_all_records_are_readable_and_those_from_elsewhere_come_last():
    every = records.load_all()
    assert [record.name for record in every][-1] == "elsewhere"
    assert sorted(record.name for record in every) == records.names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "provenance must be an object"),
        ('{"rows": [{}]}', "provenance must be an object"),
        ('{"provenance": {}, "rows": [{}]}', "names at least the gpu"),
        ('{"provenance": {"gpu": "H200"}}', "rows must be a list"),
        ('{"provenance": {"gpu": "H200"}, "rows": [1]}', "rows must be a list"),
    ],
    ids=["not-json", "a-list", "no-provenance", "nothing-in-it", "no-rows", "rows-of-numbers"],
)
def test_a_file_of_another_shape_is_refused_by_name(text, message):
    with pytest.raises(ValueError, match=f"record odd: .*{message}"):
        records.parse("odd", text)


def test_an_unknown_name_is_refused_with_the_names_that_exist():
    with pytest.raises(FileNotFoundError, match=r"'nothing'; the records are .*elsewhere"):
        records.load("nothing")


def test_an_installation_finds_its_records_under_share(tmp_path, monkeypatch):
    share = tmp_path / "share" / "c128a" / "data"
    share.mkdir(parents=True)
    (share / "elsewhere.json").write_text(json.dumps({"provenance": {"gpu": "none"}, "rows": [{"us": 1}]}))
    monkeypatch.setattr(records, "__file__", str(tmp_path / "site-packages" / "c128a" / "records.py"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert records.folder() == share
    assert records.load("elsewhere").rows == ({"us": 1},)


def test_a_missing_folder_is_reported_with_the_places_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "__file__", str(tmp_path / "site-packages" / "c128a" / "records.py"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "prefix"))
    with pytest.raises(FileNotFoundError, match=r"site-packages.*share"):
        records.folder()


def test_a_page_exported_to_wasm_takes_the_records_along(tmp_path):
    # marimo copies the folder public/ beside a notebook into its export; there, records are fetched from it.
    copied = shutil.copytree(ROOT / "notebooks" / "public", tmp_path / "public")
    for name in records.names():
        assert records.parse(name, (copied / "data" / f"{name}.json").read_text()) == records.load(name)


def test_records_and_account_need_neither_torch_nor_triton():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
        "from c128a import account, records, times\n"
        "times = times.KernelTimes.of([records.load('elsewhere')])\n"
        "print(round(account.prefill_step(account.MODELS['V4-Pro'], 8192, 32768, times).saved_us, 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2455.2"  # 62.3 - 6.5 + 31 × (90.6 - 13.2)
