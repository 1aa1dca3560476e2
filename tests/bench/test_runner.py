"""The runner's command line; its timings are made on a GPU and kept in data/."""

import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from c128a import backend
from c128a.bench import records, timing
from c128a.bench import runner as bench
from c128a.tiles import tile_shape

COMMON = {"sheet": "builder", "kernel": "builder", "cell": "1+0@9", "decode": 1, "prefill": 0, "max_seq_len": 9}
COMMON |= {"capacity": 8192, "policy": "pow2", "layout": "packed", "width": 128, "cache": "warm"}


@pytest.mark.skipif(backend.HAS_GPU, reason="says what happens where there is no GPU")
def test_without_a_gpu_nothing_is_timed(capsys):
    assert bench.main(["builder"]) == 1
    assert "NVIDIA GPU" in capsys.readouterr().err


REFUSED = """
builder --cell 1,2                          --cell '1,2'
builder --cell 0,0,5                        --cell '0,0,5'
builder --cell 1,0,1048577                  --cell 1048576
builder --repeats 2                         --repeats 2 3
host --processes 2                          --processes 2 3 12
host --processes 13                         --processes 13 3 12
host --compare json:loads                   --compare host builder
builder --compare nowhere.at.all:build      --compare nowhere
builder --compare json:nothing              --compare nothing
builder --compare json:__doc__              --compare MODULE:FUNCTION
builder --compare json                      --compare MODULE:FUNCTION
host --cell 1,0,4096                        --cell host
combine --cell 64,2048,4096                 --cell 0,PREFILL,LENGTH
combine --peers .                           --peers tokenspeed_kernel
rows                                        rows
"""  # what is typed, and words of the reason


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_bad_arguments_end_with_status_2_and_the_reason(line, capsys):
    arguments, named = re.split("  +", line)
    with pytest.raises(SystemExit) as ended:
        bench.main(arguments.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert all(word in said for word in named.split()), said


def a_row(us, **fields):
    return COMMON | timing.summary([[us]] * 3) | timing.prediction([[us]] * 3, 0.5) | {"scale": 1.5} | fields


def test_the_table_compares_with_the_row_loop_and_the_scaled_floor():
    rows = [a_row(us, variant=variant) for variant, us in (("row_loop_adaptive", 6.0), ("tiled", 3.0), ("fill", 1.0))]
    table = bench.summary(rows + [row | {"layout": "pitched"} for row in rows])
    for line, layout in zip(table.splitlines()[1:3], ("packed", "pitched"), strict=True):
        cell, *numbers = line.split()
        assert (cell, numbers[:2]) == ("1+0@9", [layout, "128"])
        # row loop, tiled, floor 1.0 × 1.5, 6/3, 3/1.5; three equal medians and a step of 0.5 to either side
        assert [*numbers[2:7], numbers[-1]] == ["6.00", "3.00", "1.50", "2.00", "2.00", "2.50-3.50"]
    assert table.count("geometric mean 2.00, least 2.00, 1 cells") == 2


def test_the_table_of_the_tiles_tells_how_far_the_chosen_shape_is_from_the_fastest():
    shapes = {"chosen": (tile_shape(1, 128), 3.0), "faster": ((32, 128, 8), 2.0)}
    rows = [a_row(us, sheet="tiles", variant=name, tile=list(tile)) for name, (tile, us) in shapes.items()]
    (line,) = bench.summary([*rows, a_row(1.0, sheet="tiles", variant="fill")]).splitlines()
    assert "1.50 ×" in line and line.index("faster") < line.index("chosen")


def test_the_samples_of_all_processes_become_one_row_that_a_record_may_hold():
    facts = COMMON | {"variant": "tiled"}
    runs = [[(facts, samples)] for samples in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0])]
    (row,) = bench.pooled(runs)
    assert (row["us"], len(row["samples"])) == (5.0, 3)
    assert row["low"] == 0.0 and row["high"] > 9
    _, rows, findings = records.parse("mine", records.as_text({"gpu": "H200"}, [row], [{"test": "one"}]))
    assert rows["samples"][0] == ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    assert findings == ({"test": "one"},)


def test_processes_that_measured_different_things_are_not_pooled():
    one, other = [[(COMMON | {"variant": name}, [1.0])] for name in ("tiled", "fill")]
    with pytest.raises(ValueError, match="measured different things"):
        bench.pooled([one, one, other])


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """The options of each run, whose figures are made up here."""
    asked = []

    def in_fresh_processes(options):
        asked.append(options)
        row = {"sheet": "host", "kernel": "host", "variant": "a call"}
        return bench.pooled([[(row, [2.5])]] * options.processes), {"sm_clock": "1980 MHz", "driver": "580"}

    monkeypatch.setattr(bench, "in_fresh_processes", in_fresh_processes)
    monkeypatch.setattr(backend, "HAS_GPU", True)
    monkeypatch.setattr(backend, "INTERPRET", False)
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path,))
    return asked


def test_out_is_a_record_with_its_provenance(measured, tmp_path, monkeypatch):
    out = tmp_path / "mine.json"
    monkeypatch.setattr("sys.argv", ["bench", "host", "--processes", "3"])
    assert bench.main(["host", "--processes", "3", "--out", str(out)]) == 0
    head, rows, _ = records.parse("mine", out.read_bytes())
    assert rows["us"].tolist() == [2.5] and rows["samples"][0] == ((2.5,),) * 3
    assert (head["processes"], head["repeats"], head["sm_clock_after"]) == (3, 9, "1980 MHz")
    assert head["command"] == "python -m c128a.bench host --processes 3"
    assert len(head["source_hash"]) == 16


@pytest.mark.parametrize("path", ["missing/mine.json", ".", "a-file/mine.json"])
def test_an_out_that_cannot_be_written_is_told_before_anything_is_measured(path, tmp_path, measured, capsys):
    (tmp_path / "a-file").touch()
    assert bench.main(["host", "--out", str(tmp_path / path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert str((tmp_path / path).parent) in said
    assert measured == []


def test_an_out_without_room_gets_one_sentence(measured, capsys):
    assert bench.main(["host", "--out", "/dev/full"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full"), timing.GpuBusyError("busy")])
def test_a_run_that_ends_early_leaves_the_old_record(error, measured, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "in_fresh_processes", Mock(side_effect=error))
    out = tmp_path / "mine.json"
    out.write_text("old")
    assert bench.main(["host", "--out", str(out)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert out.read_text() == "old" and not list(tmp_path.glob(".mine*"))


def test_what_a_fresh_process_runs_can_be_found_by_it():
    # A spawned process imports no __main__ of a package: the function must be known by the name of another module.
    assert bench.measure.__module__ == "c128a.bench.runner"
