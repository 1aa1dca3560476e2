"""A trace of torch's profiler, made here by hand in its form, is read back with the launches that were made."""

import gzip
import io
import json

import pytest

from c128a.bench import profile, records

FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>"
NAMED = ("_build_c128a_topk_metadata_kernel", "_combine_topk_swa_indices_kernel")
UNNAMED = ("kernel", "kernel")  # vLLM from 0.30 on


def trace(names=NAMED, *, steps=3, c128a=31, c4a=0, chunks=1, mark="execute_context_1(8192)", stack=False):
    """Some steps. The GPU's time of a builder is 6 µs, of a fill 3, a combine 10, attention 20; a launch takes 1.5."""
    events, now = [], 0.0

    def add(category, name, us, **args):
        events.append({"ph": "X", "cat": category, "name": name, "tid": 7, "ts": now, "dur": us, "args": args})

    def launch(name, us, workers=1, registers=32):
        nonlocal now
        add("cuda_driver", "cuLaunchKernelEx", 1.5, correlation=len(events))
        now += 2
        more = {"correlation": len(events) - 1, "registers per thread": registers, "grid": [64, workers, 1]}
        add("kernel", name, us, **more)

    for _ in range(steps):
        add("user_annotation", mark, 500.0)
        add("python_function" if stack else "", "vllm/a.py(12): build_c128a_topk_metadata", 5.0)
        launch(names[0], 6.0)
        for at in range(c128a + c4a):
            columns = 640 if at % 2 and at < 2 * c4a else 384  # C4A layers take turns with the others
            for _ in range(chunks):
                now += 10
                add("python_function" if stack else "", "vllm/b.py(34): combine_topk_swa_indices", 4.0)
                add("cpu_op", "aten::fill_", 3.0, **{"Input Dims": [[8192, columns], []]})
                launch(FILL, 3.0)
                launch(names[1], 10.0, workers=256, registers=columns)
            launch("flash_fwd", 20.0)
        now += 100
    return json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "M", "name": "process_name"}, *events]}).encode()


def read(content):
    return profile.read(io.BytesIO(content), "mine.json")


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_each_step_has_the_launches_times_width_and_saving_of_its_layers(packed):
    table = read(packed(trace()))
    assert table["step"].tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    first = table.head(3).set_index("part")
    assert first["launches"].to_dict() == {"builder": 1, "fill": 31, "combine": 31}
    assert first["us"].to_dict() == {"builder": 6, "fill": 93, "combine": 310}
    assert first["host_us"].to_dict() == {"builder": 1.5, "fill": 46.5, "combine": 46.5}  # of the launching calls
    assert first["width"].fillna(0).to_dict() == {"builder": 0, "fill": 256, "combine": 256}  # 384 without the window
    assert first.loc["combine", "share"] == pytest.approx(310 / (6 + 31 * 33))
    assert first.loc["combine", ["saved_us", "saved_host_us"]].tolist() == pytest.approx([300, 45])
    assert "31 launches of the combine" in profile.summary(table) and "390.0 µs less" in profile.summary(table)


@pytest.mark.parametrize("stack", [True, False], ids=["functions", "no functions"])
def test_layers_of_two_kinds_are_told_apart_and_only_the_rows_of_c128a_can_be_made_once(stack):
    table = read(trace(UNNAMED, steps=1, c4a=30, chunks=2, stack=stack))
    assert list(table.loc[table["part"] == "builder", "host_us"]) == [5] * stack  # nothing else tells a builder
    combines = table[table["part"] == "combine"].set_index("width")
    # 60 launches would fit 20 layers of 3 chunks too: that a layer has two is seen from the turns that they take.
    assert combines["launches"].to_dict() == {256: 62, 512: 60}
    assert combines["saved_us"].fillna(-1).to_dict() == {256: pytest.approx(620 * 30 / 31), 512: -1}
    assert combines.loc[256, "host_us"] == 62 * (2 if stack else 1.5)  # half of the function's 4 µs is its fill's


@pytest.mark.parametrize("mark", ["ProfilerStep#3", "no mark"])
def test_steps_begin_at_the_marks_else_at_the_builders(mark):
    table = read(trace(steps=2, mark=mark, c128a=1))
    assert table["step"].max() == 2
    assert table["saved_us"].sum() == 0 and "less" not in profile.summary(table)  # made once already


def test_the_example_of_an_h200_is_read_back_with_what_scripts_example_trace_launched():
    with (records.folder() / "h200-trace.json.gz").open("rb") as stream:
        table = profile.read(stream, "h200-trace.json.gz")
    made = {"builder": [1] * 3, "fill": [31] * 3, "combine": [31] * 3}
    assert table.groupby("part")["launches"].agg(list).to_dict() == made
    assert table.loc[table["part"] == "combine", "width"].tolist() == [256, 1024, 8192]


WRONG = [(b"", "JSON"), (trace()[:2000], "JSON"), (gzip.compress(trace())[:200], "JSON"), (b"\x1f\x8b\xff" * 9, "JSON")]
WRONG += [(b'{"rows": []}', "traceEvents"), (b'{"traceEvents": [{"ph": "M"}]}', "ProfilerActivity.CUDA")]
WRONG += [(f'{{"traceEvents": [{event}]}}'.encode(), "event 1") for event in ("1", '{"ph": "X", "cat": "kernel"}')]
WRONG += [(trace(("gemm", "gemm")), "_dsv4_combine_dense_swa_indices_kernel")]


@pytest.mark.parametrize(("content", "named"), WRONG)
def test_what_cannot_be_read_gets_one_sentence_with_the_name_of_its_file(content, named, tmp_path, capsys):
    (tmp_path / "mine.json").write_bytes(content)
    assert profile.main([str(tmp_path / "mine.json")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "mine.json" in said and named in said


def test_the_command_prints_what_was_launched(tmp_path, capsys):
    (tmp_path / "a.json").write_bytes(trace())
    assert profile.main([str(tmp_path / "a.json")]) == 0
    assert "31 launches of the combine" in capsys.readouterr().out
    assert profile.main([str(tmp_path)]) == 2
