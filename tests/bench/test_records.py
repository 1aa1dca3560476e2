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
FIGURES = [
    ("consumers", "0+8192@32768", 90.6, 13.2),
    ("consumers", "0+8192@131072", 97.9, 40.2),
    ("consumers", "0+8192@1048576", 210.6, 210.6),
    ("builder", "1+0@32768", 6.2, 2.23, 1.68, 1.09),
    ("builder", "1+0@1048576", 6.3, 6.30, 1.71, 1.05),
    ("builder", "32+0@32768", 6.5, 2.28, 1.61, 1.05),
    ("builder", "32+0@1048576", 6.6, 6.50, 2.07, 1.32),
    ("builder", "256+0@32768", 7.7, 2.50, 1.73, 1.14),
    ("builder", "256+0@1048576", 7.7, 7.45, 4.02, 2.92),
    ("builder", "1024+0@32768", 16.4, 3.74, 2.01, 1.30),
    ("builder", "1024+0@1048576", 19.0, 19.09, 14.15, 8.53),
    ("builder", "0+2048@32768", 17.4, 2.54, 1.88, 1.56),
    ("builder", "0+8192@4096", 62.0, 6.30, 2.55, 2.06),
    ("builder", "0+8192@32768", 62.3, 6.30, 3.46, 2.99),
    ("builder", "0+8192@131072", 62.1, 9.07, 8.96, 8.53),
    ("builder", "0+8192@1048576", 62.1, 61.9, 64.0, 58.8),
    ("builder", "64+4096@32768", 34.0, 3.80, 2.55, 2.06),
    ("combine", "0+2048@8192", 4.8, 2.5, 2.0),
    ("combine", "0+2048@32768", 5.9, 3.0, 2.4),
    ("combine", "0+2048@131072", 10.1, 4.8, 3.8),
    ("combine", "0+2048@1048576", 58.3, 21.4, 16.4),
    ("combine", "0+8192@8192", 11.2, 4.1, 3.2),
    ("combine", "0+8192@32768", 13.2, 5.3, 4.2),
    ("combine", "0+8192@131072", 40.5, 12.9, 9.8),
    ("combine", "0+8192@1048576", 209.8, 79.6, 59.8),
]
GOOD = {"sheet": "host", "kernel": "host", "variant": "a call", "us": 2.5}
CELL = {"cell": "1+0@9", "max_seq_len": 9, "capacity": 8192, "policy": "pow2", "width": 128, "cache": "warm"}


def times(**wanted):
    """Variant and microseconds of rows from elsewhere."""
    kept = records.rows(record="elsewhere", **wanted)
    return list(zip(kept["variant"], kept["us"], strict=True))


def text(*rows, **fields):
    return json.dumps({"provenance": {"gpu": "H200"}, "rows": rows} | fields)


@pytest.mark.parametrize(("sheet", "cell", "figures"), [(sheet, cell, us) for sheet, cell, *us in FIGURES])
def test_the_figures_from_elsewhere_are_as_they_were_measured(sheet, cell, figures):
    variants = VARIANTS[sheet]
    assert times(sheet=sheet, cell=cell, variant=list(variants)) == list(zip(variants, figures, strict=True))


def test_the_remaining_figures_are_as_they_were_measured():
    assert times(variant="from_positions_live") == [("from_positions_live", 70.7)]
    assert [us for _, us in times(kernel="flashmla_decode")] == [57.07, 57.03, 185.48, 185.29]
    assert [us for _, us in times(sheet="consumers", kernel="builder")] == [62.3, 6.5, 6.5, 2.4]
    host = records.rows(record="elsewhere", kernel="host")
    assert host["us"].tolist() == [27, 11, 5, 19] and (host["p20"][0], host["p80"][0]) == (27, 37)
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


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", ["odd", "JSON"]),
        (text(GOOD)[:40], ["odd", "JSON"]),
        (b"\x80\x81\xff\x00", ["odd", "JSON"]),
        ("[" * 100_000, ["odd", "JSON"]),
        ("[]", ["odd", "object"]),
        (json.dumps({"rows": [GOOD]}), ["odd", "provenance"]),
        (text(GOOD, provenance={}), ["odd", "gpu"]),
        (text(GOOD, provenance={"gpu": "H200", "torch": 2.11}), ["odd", "torch", "2.11"]),
        (text(GOOD, provenance={"gpu": "H200", "dirty": "no"}), ["odd", "dirty", "true or false"]),
        (text(GOOD, provenance={"gpu": "H200", "repeats": 9.5}), ["odd", "repeats", "9.5"]),
        (text(), ["odd", "rows"]),
        (text(GOOD, rows="many"), ["odd", "rows", "many"]),
        (text(1), ["odd", "rows"]),
        (text(GOOD, findings=[1]), ["odd", "findings"]),
        (text(GOOD, {"sheet": "host", "kernel": "host", "variant": "x"}), ["row 2", "us", "missing"]),
        *((text(GOOD | {"us": us}), ["row 1", "us", str(us)[:9]]) for us in (None, -1.0, 0, "2", True, [], 10**400)),
        (text(GOOD | {"us": float("nan")}), ["row 1", "us", "nan"]),
        (text(GOOD | {"us": float("inf")}), ["row 1", "us", "inf"]),
        (text(GOOD | {"p20": None}), ["row 1", "p20"]),
        (text(GOOD | {"sheet": "rows"}), ["row 1", "sheet", "'rows'"]),
        (text(GOOD | {"time": 1.0}), ["row 1", "'time'"]),
        (text(GOOD | {"decode": 1.5}), ["row 1", "decode", "1.5"]),
        (text(GOOD | {"width": -128}), ["row 1", "width", "-128"]),
        (text(GOOD | {"tile": [1, 2]}), ["row 1", "tile"]),
        (text(GOOD | {"samples": [1.0]}), ["row 1", "samples"]),
        (text(GOOD | {"samples": [[float("nan")]]}), ["row 1", "samples"]),
        (text(GOOD | {"kernel": "builder"}), ["row 1", "cell", "missing"]),
        (text(GOOD | CELL | {"kernel": "builder", "cache": "hot"}), ["row 1", "cache", "'hot'"]),
    ],
)
def test_a_broken_record_is_refused_by_file_row_and_field(content, named):
    with pytest.raises(ValueError) as refused:
        records.parse("odd", content)
    assert all(word in str(refused.value) for word in ("record odd", *named)), refused.value
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


class TestWholeFile:
    def test_takes_the_place_of_what_was_there_only_when_it_is_done(self, tmp_path):
        path = tmp_path / "record.json"
        path.write_text("old")
        with records.whole_file(path, reserve=4096) as file:
            assert len(list(tmp_path.iterdir())) == 2 and path.read_text() == "old"
            file.write("new")
        assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]

    def test_a_disk_without_room_is_noticed_before_anything_is_done(self, tmp_path):
        begun = []
        with pytest.raises(OSError), records.whole_file(tmp_path / "record.json", reserve=2**60):
            begun.append(True)
        assert begun == [] and list(tmp_path.iterdir()) == []

    def test_a_link_stays_a_link_and_its_target_is_written(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "record.json")
        with records.whole_file(tmp_path / "link") as file:
            file.write("text")
        assert (tmp_path / "link").is_symlink() and (tmp_path / "record.json").read_text() == "text"
