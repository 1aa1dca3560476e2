"""The arithmetic of a measurement, and the lock that lets one session time at a time."""

import multiprocessing
import os
import stat
import tempfile
import time

import pytest

from c128a.bench import timing
from c128a.bench.timing import GpuBusyError, device_lock, lock_file, prediction, summary


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder that all users may write, as the only one for locks."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path / "missing", tmp_path))
    return tmp_path


def test_quantiles_are_interpolated_over_the_samples_of_all_processes_which_are_kept_apart_to_a_thousandth():
    row = summary([[1.0, 3.0, 2.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.00049]])
    assert row == {"us": 5.0, "p20": 2.6, "p80": 7.4, "samples": [[1, 3, 2], [4, 5, 6], [7, 8, 9]]}


def test_what_one_more_process_measures_is_predicted_from_the_medians_of_the_others():
    # Medians 20, 40, 60, 80: mean 50, standard deviation 25.82; t of 3 degrees of freedom 5.841; √(1 + 1/4) = 1.118.
    processes = [[median - 1, median, median + 1] for median in (20.0, 40.0, 60.0, 80.0)]
    reach = 5.841 * 25.82 * 1.118 + 0.01
    assert prediction(processes, 0.01) == {"low": 0.0, "high": pytest.approx(50 + reach, abs=0.02)}, "no time < 0"
    later = [[sample + 1000 for sample in process] for process in processes]
    assert prediction(later, 0.01)["low"] == pytest.approx(1050 - reach, abs=0.02)
    assert prediction([[2.0]] * 3, 0.01) == {"low": 1.99, "high": 2.01}, "a step of the clock stays uncertain"


def test_one_session_at_a_time_holds_a_device(shared):
    with pytest.raises(RuntimeError, match="while timing"), device_lock(None):
        with pytest.raises(GpuBusyError, match="this CPU"), device_lock(None):
            pass
        with device_lock(0):  # another device
            pass
        raise RuntimeError("while timing")
    with device_lock(None):  # free again
        pass


def test_the_end_of_a_process_frees_the_lock(shared):
    def hold():
        with device_lock(None):
            locked.set()
            time.sleep(60)

    fork = multiprocessing.get_context("fork")
    locked, holder = fork.Event(), fork.Process(target=hold)
    holder.start()
    try:
        assert locked.wait(30)
        with pytest.raises(GpuBusyError), device_lock(None):
            pass
    finally:
        holder.kill()
        holder.join()
    with device_lock(None):
        pass


def test_the_place_of_the_lock_does_not_depend_on_the_environment(tmp_path, monkeypatch):
    before = lock_file(None)
    for name in ("TMPDIR", "TMP", "TEMP", "HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # or it would remember
    assert lock_file(None) == before and before.parent in timing.LOCK_FOLDERS


def test_only_a_folder_that_every_user_may_write_holds_the_lock(shared, monkeypatch):
    mine = shared / "mine"
    mine.mkdir(mode=0o755)
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (mine, shared))
    assert lock_file(None).parent == shared


def test_every_user_may_open_a_lock_file_whatever_the_umask_of_the_one_who_made_it(shared):
    before = os.umask(0o077)
    try:
        with device_lock(None):
            assert stat.S_IMODE(lock_file(None).stat().st_mode) == 0o666
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_a_file_that_another_user_made_is_locked_as_it_is(shared, mode):
    path = lock_file(None)
    path.touch()
    path.chmod(mode)
    before = path.stat()
    with device_lock(None), pytest.raises(GpuBusyError), device_lock(None):
        pass
    after = path.stat()
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, mode)
