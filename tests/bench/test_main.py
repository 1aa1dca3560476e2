"""The bench's command line and its arithmetic; its timings are made on a GPU and kept in data/."""

import json

import pytest

from c128a import backend
from c128a.bench import __main__ as bench
from c128a.bench_cases import CELLS, Cell
from c128a.timing import GpuBusyError, Pooled, Sample, gpu_lock


def test_the_cells_are_those_of_the_baseline_and_one_long_among_short():
    assert len(CELLS) == 29
    assert {cell.max_seq_len for cell in CELLS} == {4_096, 32_768, 131_072, 1_048_576}
    assert CELLS[-1] == Cell(256, 0, 1_048_576, short=4_096)


@pytest.mark.skipif(backend.HAS_GPU, reason="says what happens where there is no GPU")
def test_without_a_gpu_nothing_is_timed(capsys):
    assert bench.main(["builder"]) == 1
    assert "needs an NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["builder", "--cell", "1,2"], "--cell is '1,2'; it must be three integers"),
        (["builder", "--cell", "0,0,5"], "it needs a row"),
        (["builder", "--repeats", "2"], "--repeats is 2; it must be at least 3"),
        (["host", "--processes", "2"], "--processes is 2; it must be between 3 and 12"),
        (["host", "--compare", "json:loads"], "--compare is 'json:loads'; only the sheet builder compares"),
        (["host", "--cell", "1,0,4096"], "--cell is given; the sheet host has one case of its own"),
        (["combine", "--cell", "64,2048,4096"], "the combine has prefill tokens alone: 0,PREFILL,LENGTH"),
        (["rows"], "invalid choice"),
    ],
    ids=["two-numbers", "no-rows", "repeats", "processes", "compare", "host-cell", "combine-cell", "sheet"],
)
def test_bad_arguments_end_with_status_2_and_the_reason(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_summary_compares_with_the_row_loop_and_the_scaled_floor():
    common = {
        "sheet": "builder",
        "cache": "warm",
        "cell": "c",
        "decode": 1,
        "prefill": 0,
        "max_seq_len": 9,
        "width": 128,
    }
    rows = [
        {**common, "variant": variant, "us": us, "floor_scale": 1.5, "prediction": [us - 0.5, us + 0.5]}
        for variant, us in (("row_loop_adaptive", 6.0), ("tiled", 3.0), ("fill", 1.0))
    ]
    table = bench.summary(rows)
    assert table.splitlines()[1].split()[-6:] == ["6.00", "3.00", "1.50", "2.00", "2.00", "2.50-3.50"]
    assert "geometric mean 2.00, least 2.00, 1 cells" in table


def test_quantiles_of_a_sample_are_interpolated():
    assert Sample((4.0, 1.0, 3.0, 2.0)).summary() == {
        "us": 2.5,
        "p20": 1.6,
        "p80": 3.4,
        "samples": [4.0, 1.0, 3.0, 2.0],
    }


def test_what_one_more_process_measures_is_predicted_from_the_medians_of_the_others():
    # Medians 2, 4, 6, 8: mean 5, standard deviation 2.582; t of 3 degrees of freedom 5.841; √(1 + 1/4) = 1.118.
    processes = tuple(Sample((median - 1.0, median, median + 1.0)) for median in (2.0, 4.0, 6.0, 8.0))
    low, high = Pooled(processes, 0.01).prediction()
    assert (low, high) == pytest.approx((5 - 16.871, 5 + 16.871), abs=0.001)
    assert Pooled(processes, 0.01).summary()["prediction"] == [0.0, 21.87], "no time is negative"


def test_processes_that_agree_exactly_are_still_uncertain_by_a_step_of_the_clock():
    same = Pooled((Sample((2.0,)),) * 3, 0.01)
    assert same.summary()["prediction"] == [1.99, 2.01]


def test_the_samples_of_all_processes_are_pooled_and_kept_apart():
    facts = {"sheet": "builder", "variant": "tiled", "cache": "warm"}
    runs = [[(facts, Sample(values))] for values in ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))]
    (row,) = bench.pooled(runs)
    assert row["us"] == 5.0 and row["p20"] == 2.6 and row["p80"] == 7.4
    assert row["samples"] == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    assert row | facts == row


def test_processes_that_measured_different_things_are_not_pooled():
    one, other = [[({"variant": name, "cache": "warm"}, Sample((1.0,)))] for name in ("tiled", "fill")]
    with pytest.raises(ValueError, match="measured different things"):
        bench.pooled([one, one, other])


def test_a_record_is_json_with_a_line_a_row():
    text = bench.record_text({"gpu": "H200"}, [{"us": 1.0}, {"us": 2.0}])
    assert json.loads(text) == {"provenance": {"gpu": "H200"}, "rows": [{"us": 1.0}, {"us": 2.0}]}
    assert '\n{"us": 1.0},\n{"us": 2.0}\n' in text


def test_one_timing_at_a_time_on_a_gpu():
    with gpu_lock(7), pytest.raises(GpuBusyError, match="another session is timing on GPU 7"), gpu_lock(7):
        pass
    with gpu_lock(7):
        pass
