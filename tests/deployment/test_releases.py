"""What each release does, as read in its wheel."""

import pytest

from c128a.deployment.releases import release_of

FREE, HELD = (1, 3, 4, 5), (1, 1, 1, 2)  # compiled variants, before and after integers were kept from specialisation
RELEASES = {
    ("fixed", "pitched", FREE): ("0.26.0", "0.28.0"),
    ("pow2", "packed", FREE): ("0.27.0", "0.27.1"),  # the only releases that moved their rows
    ("pow2", "pitched", FREE): ("0.29.0",),
    ("pow2", "pitched", HELD): ("0.30.1rc2", "v0.31.0+cu130", "0.32.0", "0.33.0", "0.34.0", "0.35.0", "1.0"),
}


@pytest.mark.parametrize(("facts", "version"), [(facts, one) for facts, some in RELEASES.items() for one in some])
def test_width_stride_and_variants_of_each_release(facts, version):
    release = release_of(version)
    assert (release.policy, release.layout, release.variants) == facts
    assert release.known is (version not in ("0.35.0", "1.0"))  # newer than every wheel that was read


@pytest.mark.parametrize(
    ("version", "mtp", "dspark", "draft_model"),
    [("0.26.0", 4, 7, 4), ("0.30.0", 4, 7, 4), ("0.31.0", 4, 4, 4), ("0.33.0", 4, 4, 4), ("0.34.0", 4, 4, 5)],
)
def test_the_decode_split_of_three_speculative_tokens_by_method(version, mtp, dspark, draft_model):
    # 1 + 2 × 3 where the draft is parallel, up to 0.30; 1 + 3 + 1 for a standalone draft model from 0.34 on
    lengths = [release_of(version).decode_query_len(3, method) for method in ("mtp", "dspark", "draft_model")]
    assert lengths == [mtp, dspark, draft_model]
    assert {release_of(version).decode_query_len(0, method) for method in (None, "dspark", "draft_model")} == {1}


@pytest.mark.parametrize("version", ["0.25.3", "0.2", "latest", "", None, "9" * 99])
def test_what_is_no_documented_version_is_refused_by_name(version):
    with pytest.raises(ValueError, match="release is"):
        release_of(version)
