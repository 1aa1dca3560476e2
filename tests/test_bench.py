"""The bench's command line and its arithmetic; its timings are made on a GPU and kept in data/."""

import pytest

from c128a import backend, bench
from c128a.bench_cases import CELLS, Cell
from c128a.timing import GpuBusyError, Sample, gpu_lock


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
        (["rows"], "invalid choice"),
    ],
    ids=["two-numbers", "no-rows", "repeats", "sheet"],
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
        {**common, "variant": variant, "us": us, "floor_scale": 1.5}
        for variant, us in (("row_loop_adaptive", 6.0), ("tiled", 3.0), ("fill", 1.0))
    ]
    table = bench.summary(rows)
    assert table.splitlines()[1].split()[-5:] == ["6.00", "3.00", "1.50", "2.00", "2.00"]
    assert "geometric mean 2.00, least 2.00, 1 cells" in table


def test_quantiles_of_a_sample_are_interpolated():
    assert Sample((4.0, 1.0, 3.0, 2.0)).summary() == {
        "us": 2.5,
        "p20": 1.6,
        "p80": 3.4,
        "samples": [4.0, 1.0, 3.0, 2.0],
    }


def test_one_timing_at_a_time_on_a_gpu():
    with gpu_lock(7), pytest.raises(GpuBusyError, match="another session is timing on GPU 7"), gpu_lock(7):
        pass
    with gpu_lock(7):
        pass
