import pytest

from c128a.releases import RELEASES, release_of


@pytest.mark.parametrize(
    ("version", "policy", "layout"),
    [
        ("0.26.0", "fixed", "pitched"),
        ("0.27.1", "pow2", "packed"),
        ("0.28.0", "fixed", "pitched"),
        ("0.30.0", "pow2", "pitched"),
        ("0.30.1rc2", "pow2", "pitched"),
        ("v0.31.0+cu130", "pow2", "pitched"),
        ("1.0", "pow2", "pitched"),
    ],
)
def test_width_and_stride_of_each_release(version, policy, layout):
    release = release_of(version)
    assert (release.policy, release.layout) == (policy, layout)


@pytest.mark.parametrize("version", ["0.25.3", "0.29.0", "0.2", "latest", ""])
def test_an_undocumented_version_is_refused_by_name(version):
    with pytest.raises(ValueError, match=f"release is {version!r}"):
        release_of(version)


def test_only_one_release_moved_its_rows():
    assert [release.name for release in RELEASES if release.layout == "packed"] == ["0.27.1"]
