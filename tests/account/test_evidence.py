"""Evidence that runs the kernel: what the package's build gives, and that each kind of wrong build is noticed."""

import pytest

from c128a.account import claims, evidence
from c128a.metadata import C128AMetadataBuilder, build_c128a_topk_metadata


def spoiled(change):
    """A build after which change(views, buffers, width) is done."""

    def build(*arguments, max_compressed_tokens, **options):
        views = build_c128a_topk_metadata(*arguments, max_compressed_tokens=max_compressed_tokens, **options)
        change(views, arguments[7:10], max_compressed_tokens)
        return views

    return build


def leaves_a_cell(*arguments, **options):
    buffer, before = arguments[9], arguments[9].clone()  # prefill rows
    views = build_c128a_topk_metadata(*arguments, **options)
    buffer[0, 127] = before[0, 127] if views[2].numel() else buffer[0, 127]
    return views


def takes_any_width(*arguments, max_compressed_tokens, **options):
    width = min(max_compressed_tokens, arguments[7].shape[1])
    return build_c128a_topk_metadata(*arguments, max_compressed_tokens=width, **options)


def refuses_after_writing(*arguments, **options):
    arguments[8].zero_()  # lens
    return build_c128a_topk_metadata(*arguments, **options)


def always_pitched(*arguments, layout, **options):
    return build_c128a_topk_metadata(*arguments, layout="pitched", **options)


def starts_elsewhere(*arguments, max_compressed_tokens, **options):
    rows, *rest = build_c128a_topk_metadata(*arguments, max_compressed_tokens=max_compressed_tokens, **options)
    return (rows if max_compressed_tokens == 512 else rows.clone(), *rest)


writes_outside = spoiled(lambda views, buffers, width: buffers[0].view(-1)[-1:].zero_())
counts_one_more = spoiled(lambda views, buffers, width: views[1].add_(1))
wide_rows_go_on = spoiled(lambda views, buffers, width: views[2][:, 2047:].zero_())
narrow_rows_differ = spoiled(lambda views, buffers, width: views[0][:1, :1].add_(width < 2048))


ARITHMETIC = {"frozen_wrong": 0, "packed": 0, "pitched": 0}  # facts of a claim for which no kernel runs


class Silent(C128AMetadataBuilder):
    def build(self, *_, **__):
        return None


class Curt(C128AMetadataBuilder):
    def build(self, *_, **__):
        raise ValueError("too long")


RIGHT = {  # by claim: what examines it, and what the package's own build gives
    "shapes": (evidence.pr_test, {"right": 9, "values": 9}),
    "bounds": (
        evidence.bounds,
        # 2 layouts × (3 widths): 8 × 512 cells twice and 8 lens, less 3 + 5 rows of the width and 3 lens.
        {"outside": 2 * sum(2 * 8 * 512 + 8 - 8 * width - 3 for width in (128, 256, 512))}
        | {"changed_outside": 0, "unwritten_inside": 0, "refused": 2, "too_wide": 2},
    ),
    # Of widths 128, 256, 512, 1024 and 2048 those that hold the sequence.
    "semantics": (evidence.semantics, {"different": 0, "builds": 2 + 3 + 5 + 5}),
    "addresses": (evidence.frozen, {"addresses": 1, "right": {"packed": [True] + [False] * 3, "pitched": [True] * 4}}),
}


@pytest.mark.parametrize("claim", RIGHT)
def test_the_own_build_is_right(claim):
    examine, expected = RIGHT[claim]
    assert {name: examine()[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("claim", "examine", "build", "changed", "level"),
    [
        (claims.shapes, evidence.pr_test, counts_one_more, {"right": 8}, "does not hold"),
        (claims.shapes, evidence.pr_test, leaves_a_cell, {"right": 8}, "does not hold"),
        # Once in each of 2 layouts × 3 widths.
        (claims.bounds, evidence.bounds, writes_outside, {"changed_outside": 6}, "does not hold"),
        (claims.bounds, evidence.bounds, leaves_a_cell, {"unwritten_inside": 6}, "does not hold"),
        (claims.bounds, evidence.bounds, takes_any_width, {"refused": 0}, "holds in part"),
        # The 5 lens past the 3 of a view, in each of them.
        (claims.bounds, evidence.bounds, refuses_after_writing, {"refused": 0, "changed_outside": 30}, "does not hold"),
        # Once in each build under full width that has decode rows, or in each that has prefill rows.
        (claims.semantics, evidence.semantics, narrow_rows_differ, {"different": 7}, "does not hold"),
        (claims.semantics, evidence.semantics, leaves_a_cell, {"different": 7}, "does not hold"),
        # Two prefill rows in one narrower build of the mixed batch, and in four of the batch of prefill rows.
        (claims.semantics, evidence.semantics, wide_rows_go_on, {"different": 2 * (1 + 4)}, "does not hold"),
    ],
    ids=lambda value: getattr(value, "__name__", getattr(value, "key", "")),
)
def test_a_wrong_build_is_noticed(claim, examine, build, changed, level):
    facts, right = examine(build), examine()
    numbers = {name: value for name, value in facts.items() if isinstance(value, int) and value != right[name]}
    assert numbers == changed
    assert claim.level(ARITHMETIC | facts) == level


def test_addresses_rows_that_move_and_views_that_start_elsewhere_are_noticed():
    levels = [
        claims.addresses.level(ARITHMETIC | evidence.frozen(build)) for build in (always_pitched, starts_elsewhere)
    ]
    assert levels == ["holds", "does not hold"]
    assert claims.addresses.level(ARITHMETIC | evidence.frozen()) == "does not hold"


@pytest.mark.parametrize(
    ("builder", "refused"), [(C128AMetadataBuilder, 4), (Silent, 0), (Curt, 0)], ids=["own", "silent", "curt"]
)
def test_empty_and_odd_what_the_formula_cuts_off_must_be_refused_with_both_numbers(builder, refused):
    assert evidence.refusals(builder) == {"asked": 4, "refused": refused}
