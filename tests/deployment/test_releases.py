"""What each release does, as read in its wheel."""

import pytest

from c128a.deployment.releases import RELEASES, release_of


@pytest.mark.parametrize(
    ("version", "policy", "layout"),
    [
        ("0.26.0", "fixed", "pitched"),
        ("0.27.1", "pow2", "packed"),
        ("0.28.0", "fixed", "pitched"),
        ("0.29.0", "pow2", "pitched"),
        ("0.30.1rc2", "pow2", "pitched"),
        ("v0.31.0+cu130", "pow2", "pitched"),
        ("0.34.0", "pow2", "pitched"),
    ],
)
def test_width_and_stride_of_each_release(version, policy, layout):
    release = release_of(version)
    assert (release.policy, release.layout, release.known) == (policy, layout, True)


@pytest.mark.parametrize(
    ("version", "mtp", "dspark", "draft_model"),
    [("0.26.0", 4, 7, 4), ("0.30.0", 4, 7, 4), ("0.31.0", 4, 4, 4), ("0.33.0", 4, 4, 4), ("0.34.0", 4, 4, 5)],
)
def test_the_decode_split_of_three_speculative_tokens_by_method(version, mtp, dspark, draft_model):
    # 1 + 2 × 3 where the draft is parallel, up to 0.30; 1 + 3 + 1 for a standalone draft model from 0.34 on
    lengths = [release_of(version).decode_query_len(3, method) for method in ("mtp", "dspark", "draft_model")]
    assert lengths == [mtp, dspark, draft_model]
    assert {release_of(version).decode_query_len(0, method) for method in (None, "dspark", "draft_model")} == {1}


def test_integers_are_kept_from_specialisation_from_0_30_on():
    assert {release.variants for release in RELEASES if release.name < "0.30"} == {(1, 3, 4, 5)}
    assert {release.variants for release in RELEASES if release.name >= "0.30"} == {(1, 1, 1, 2)}


def test_only_one_release_moved_its_rows():
    assert [release.name for release in RELEASES if release.layout == "packed"] == ["0.27.1"]


@pytest.mark.parametrize("version", ["0.25.3", "0.2", "latest", "", None, "9" * 99])
def test_what_is_no_documented_version_is_refused_by_name(version):
    with pytest.raises(ValueError, match="release is"):
        release_of(version)


@pytest.mark.parametrize("version", ["0.35.0", "1.0"])
def test_a_newer_release_has_the_facts_of_the_newest_and_is_not_known(version):
    release = release_of(version)
    assert (release.known, release.layout, release.variants) == (False, "pitched", (1, 1, 1, 2))
