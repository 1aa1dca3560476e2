"""Records: found, checked field by field, and the figures from elsewhere digit by digit."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c128a.account.step import times_of
from c128a.bench import records
from c128a.deployment.__main__ import main as deployment

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = {  # of each sheet of the figures from elsewhere; consumers: the released combine, per C128A layer
    "consumers": ("from_rows_fixed", "from_rows_adaptive"),
    "builder": ("row_loop_fixed", "row_loop_adaptive", "tiled", "fill"),
    "combine": ("from_rows_adaptive", "from_positions", "fill"),
}
FIGURES = {  # by sheet and rows, then by length: the times of the variants
    ("consumers", "0+8192"): {32_768: (90.6, 13.2), 131_072: (97.9, 40.2), 1_048_576: (210.6, 210.6)},
    ("builder", "1+0"): {32_768: (6.2, 2.23, 1.68, 1.09), 1_048_576: (6.3, 6.30, 1.71, 1.05)},
    ("builder", "32+0"): {32_768: (6.5, 2.28, 1.61, 1.05), 1_048_576: (6.6, 6.50, 2.07, 1.32)},
    ("builder", "256+0"): {32_768: (7.7, 2.50, 1.73, 1.14), 1_048_576: (7.7, 7.45, 4.02, 2.92)},
    ("builder", "1024+0"): {32_768: (16.4, 3.74, 2.01, 1.30), 1_048_576: (19.0, 19.09, 14.15, 8.53)},
    ("builder", "0+2048"): {32_768: (17.4, 2.54, 1.88, 1.56)},
    ("builder", "0+8192"): {4_096: (62.0, 6.30, 2.55, 2.06), 32_768: (62.3, 6.30, 3.46, 2.99)}
    | {131_072: (62.1, 9.07, 8.96, 8.53), 1_048_576: (62.1, 61.9, 64.0, 58.8)},
    ("builder", "64+4096"): {32_768: (34.0, 3.80, 2.55, 2.06)},
    ("combine", "0+2048"): {8_192: (4.8, 2.5, 2.0), 32_768: (5.9, 3.0, 2.4)}
    | {131_072: (10.1, 4.8, 3.8), 1_048_576: (58.3, 21.4, 16.4)},
    ("combine", "0+8192"): {8_192: (11.2, 4.1, 3.2), 32_768: (13.2, 5.3, 4.2)}
    | {131_072: (40.5, 12.9, 9.8), 1_048_576: (209.8, 79.6, 59.8)},
}
GOOD = {"sheet": "host", "kernel": "host", "variant": "a call", "us": 2.5}
CELL = {"cell": "1+0@9", "max_seq_len": 9, "capacity": 8192, "policy": "pow2", "width": 128, "cache": "warm"}


def times(**wanted):
    """Variant and microseconds of rows from elsewhere."""
    kept = records.rows(record="elsewhere", **wanted)
    return list(zip(kept["variant"], kept["us"], strict=True))


def text(*rows, **fields):
    return json.dumps({"provenance": {"gpu": "H200"}, "rows": rows} | fields)


@pytest.mark.parametrize(("sheet", "rows"), FIGURES, ids=map(" ".join, FIGURES))
def test_the_figures_from_elsewhere_are_as_they_were_measured(sheet, rows):
    variants = VARIANTS[sheet]
    for length, figures in FIGURES[sheet, rows].items():
        found = times(sheet=sheet, cell=f"{rows}@{length}", variant=list(variants))
        assert found == list(zip(variants, figures, strict=True)), length


def test_the_remaining_figures_are_as_they_were_measured():
    assert times(variant="from_positions_live") == [("from_positions_live", 70.7)]
    assert [us for _, us in times(kernel="flashmla_decode")] == [57.07, 57.03, 185.48, 185.29]
    assert [us for _, us in times(sheet="consumers", kernel="builder")] == [62.3, 6.5, 6.5, 2.4]
    host = records.rows(record="elsewhere", kernel="host")
    assert host["us"].tolist() == [27, 11, 5, 19] and host["p20"].isna().all()
    frozen = [row for row in records.findings("elsewhere") if row["sheet"] == "frozen"]
    assert len({(row["layout"], row["max_seq_len"]) for row in frozen}) == len(frozen) == 6
    for row in frozen:
        errors = [row[f"relative_error_{end}"] for end in ("low", "high")]
        assert errors == [[0, end * (row["layout"] == "packed"), 0, 0] for end in (0.03, 0.08)]


def test_the_table_has_the_documented_columns_and_ends_with_the_figures_from_elsewhere():
    table = records.rows()
    assert list(table.columns) == list(records.COLUMNS)
    assert table["source"].iloc[-1] == "elsewhere" and table["source"].iloc[0] == "recorded"
    assert records.names()[-1] == "elsewhere" and records.problems() == []
    with pytest.raises(ValueError, match="'kind' is no column"):
        records.rows(kind="elsewhere")
    with pytest.raises(FileNotFoundError, match=r"'nothing'; the records are .*elsewhere"):
        records.provenance("nothing")


HEADS = [({}, "gpu"), ({"torch": 2.11}, "torch 2.11"), ({"dirty": "no"}, "dirty true or false")]
HEADS += [({"repeats": 9.5}, "repeats 9.5")]
WRONG = [{"us": us} for us in (None, -1.0, 0, "2", True, [], 10**400, float("nan"), float("inf"))]
WRONG += [{"p20": None}, {"sheet": "rows"}, {"decode": 1.5}, {"width": -128}, {"tile": [1, 2]}, {"samples": [1.0]}]
WRONG += [{"samples": [[float("nan")]]}, {"kernel": "builder"} | CELL | {"cache": "hot"}]
BROKEN = [
    *((content, "JSON") for content in (b"", text(GOOD)[:40], b"\x80\x81\xff\x00", "[" * 100_000)),
    ("[]", "object"),
    (json.dumps({"rows": [GOOD]}), "provenance"),
    *((text(GOOD, provenance=head and {"gpu": "H200"} | head), named) for head, named in HEADS),
    (text(), "rows"),
    (text(GOOD, rows="many"), "rows many"),
    (text(1), "rows"),
    (text(GOOD, findings=[1]), "findings"),
    (text(GOOD, {"sheet": "host", "kernel": "host", "variant": "x"}), "row 2 us missing"),
    (text(GOOD | {"kernel": "builder"}), "row 1 cell missing"),
    (text(GOOD | {"time": 1.0}), "row 1 'time'"),
    *((text(GOOD | fields), f"row 1 {list(fields)[-1]} {str(list(fields.values())[-1])[:9]}") for fields in WRONG),
]


@pytest.mark.parametrize(("content", "named"), BROKEN, ids=[named for _, named in BROKEN])
def test_a_broken_record_is_refused_by_file_row_and_field(content, named):
    with pytest.raises(ValueError) as refused:
        records.parse("odd", content)
    assert all(word in str(refused.value) for word in ("record odd", *named.split())), refused.value
    assert len(str(refused.value)) < 400


def test_the_table_and_the_command_that_reads_it_go_on_without_a_broken_record(tmp_path, monkeypatch, capsys, request):
    request.addfinalizer(times_of.cache_clear)  # which the command fills from these records
    times_of.cache_clear()
    for name, content in (("elsewhere", text(GOOD)), ("mine", text(GOOD | {"us": 7})), ("odd", "{")):
        (tmp_path / f"{name}.json").write_text(content)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(records, "folder", lambda: tmp_path)
    records.provenance("elsewhere").clear()  # what a caller does to his copy stays with him
    assert records.provenance("elsewhere") == {"gpu": "H200"}
    assert records.rows()[["record", "us"]].values.tolist() == [["mine", 7], ["elsewhere", 2.5]]
    assert [problem.split(":")[0] for problem in records.problems()] == ["record gone", "record odd"]
    assert records.names() == ["gone", "mine", "odd", "elsewhere"]
    assert deployment(["--release", "0.34.0", "--max-model-len", "4096"]) in (0, 3)
    said = capsys.readouterr().err
    assert "record gone" in said and "record odd: not JSON" in said


def test_a_wheel_takes_the_records_along_and_an_installation_anywhere_finds_them(tmp_path):
    pytest.importorskip("setuptools", minversion="77", reason="a wheel is built with setuptools 77 or newer")
    source = tmp_path / "source"
    for name in ("data", "c128a"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", "lib"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--no-index", source], check=True, cwd=tmp_path)
    program = (
        f"import sys; sys.path = ['lib', *sys.path, *{sys.path}]\n"
        "from c128a.bench import records\n"
        "print(records.folder(), len(records.rows()), *records.problems(), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-P", "-S", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{tmp_path}/lib/c128a/data", str(len(records.rows()))]


def test_a_missing_folder_is_reported_with_the_places_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "__file__", str(tmp_path / "c128a" / "bench" / "records.py"))
    monkeypatch.setattr(records.resources, "files", lambda name: tmp_path / "installed" / name)
    with pytest.raises(FileNotFoundError) as missing:
        records.folder()
    assert str(tmp_path / "data") in str(missing.value) and "installed" in str(missing.value)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "elsewhere.json").write_text(text(GOOD))
    assert records.folder() == tmp_path / "data"


def test_a_page_exported_to_wasm_takes_the_records_along():
    # marimo copies the folder public/ beside a notebook into its export; there, records are fetched from it.
    for name in records.names():
        content = (ROOT / "notebooks" / "public" / "data" / f"{name}.json").read_bytes()
        assert records.parse(name, content).provenance == records.provenance(name)


def test_a_file_takes_the_place_of_what_was_there_only_when_it_is_done_and_a_link_stays_one(tmp_path):
    path, link = tmp_path / "record.json", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)
    with records.whole_file(link, reserve=4096) as file:
        assert len(list(tmp_path.iterdir())) == 3 and path.read_text() == "old"
        file.write("new")
    assert path.read_text() == "new" and set(tmp_path.iterdir()) == {path, link} and link.is_symlink()


def test_a_disk_without_room_is_noticed_before_anything_is_done(tmp_path):
    begun = []
    with pytest.raises(OSError), records.whole_file(tmp_path / "record.json", reserve=2**60):
        begun.append(True)
    assert begun == [] and list(tmp_path.iterdir()) == []
