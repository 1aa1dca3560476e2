"""A made-up run of the bench: times that are easy to divide, in the shape that the bench writes."""

from c128a.records import Record

WIDTHS = {4_096: 128, 32_768: 256, 131_072: 1024, 1_048_576: 8192}
LENGTHS = tuple(WIDTHS)
BATCHES = ((1, 0, None), (0, 2048, None), (0, 8192, None), (256, 0, 4_096))


def row(variant, us, *, decode=0, prefill=8192, seq=32_768, width=256, short=None, cache="warm", **more):
    """One measured row: a spread of 2 % around its time."""
    kernel = variant if variant in ("empty", "loads") else "builder"
    fields = {
        "sheet": "builder",
        "kernel": kernel,
        "variant": variant,
        "decode": decode,
        "prefill": prefill,
        "max_seq_len": seq,
        "short_seq_len": short,
        "capacity": 8192,
        "width": width,
        "bytes": (decode + prefill) * width * 4 if kernel == "builder" else 0,
        "floor_scale": 1.0,
        "cache": cache,
        "us": us,
        "p20": us * 0.99,
        "p80": us * 1.01,
    }
    return fields | more


def builder_run(*, cold=False):
    """Every batch at every length: fixed 64 µs, adaptive 8, tiles 4, fill 2 (all 64 at full width), empty 0.5."""
    rows = []
    for cache in ("warm", "cold") if cold else ("warm",):
        more = 1 if cache == "warm" else 2
        for decode, prefill, short in BATCHES:
            for seq in LENGTHS if short is None else LENGTHS[-1:]:
                at = {"decode": decode, "prefill": prefill, "seq": seq, "short": short, "cache": cache}
                full = WIDTHS[seq] == 8192
                rows += [
                    row("row_loop_fixed", 64.0 * more, width=8192, **at),
                    row("tiled_fixed", 60.0 * more, width=8192, **at),
                    row("row_loop_adaptive", 64.0 if full else 8.0 * more, width=WIDTHS[seq], **at),
                    row("tiled", 32.0 if full else 4.0 * more, width=WIDTHS[seq], **at),
                    row("tiled_serial", 33.0 if full else 5.0 * more, width=WIDTHS[seq], **at),
                    row("fill", 16.0 if full else 2.0 * more, width=WIDTHS[seq], **at),
                    row("loads", 1.0 * more, width=WIDTHS[seq], **at),
                    row("empty", 0.5 * more, width=WIDTHS[seq], **at),
                ]
    return Record("h200-builder", facts("builder"), tuple(rows))


def combine_run():
    """Both token counts at every length: from rows 20 µs, from positions 8, fill 6; at fixed width 80."""
    rows = []
    for prefill in (2048, 8192):
        for seq, width in {8_192: 128, 32_768: 256, 131_072: 1024, 1_048_576: 8192}.items():
            for variant, us in {
                "from_rows_fixed": 80.0,
                "from_rows_adaptive": 20.0,
                "from_positions": 8.0,
                "from_positions_live": 7.0,
                "from_positions_fixed": 40.0,
                "fill": 6.0,
            }.items():
                columns = (8192 if variant.endswith("fixed") else width) + 128
                one = row(variant, us, prefill=prefill, seq=seq, width=columns - 128, bytes=prefill * columns * 4)
                rows.append(one | {"sheet": "combine", "kernel": "combine", "out_width": columns})
    return Record("h200-combine", facts("combine"), tuple(rows))


def host_run():
    """A build of 12 µs: facts 2, launch 8; Triton's ordinary launch 30."""
    parts = {
        "build_c128a_topk_metadata": 12.0,
        "its part: facts of the four inputs": 2.0,
        "its part: launch": 8.0,
        "row loop, Triton's ordinary launch alone": 30.0,
    }
    rows = tuple(
        {"sheet": "host", "kernel": "host", "variant": name, "us": us, "p20": us * 0.99, "p80": us * 1.01}
        for name, us in parts.items()
    )
    return Record("h200-host", facts("host"), rows)


def facts(sheet):
    """A complete provenance."""
    return {
        "gpu": "NVIDIA H200",
        "driver": "580.1",
        "torch": "2.11.0",
        "triton": "3.6.0",
        "commit": "a" * 40,
        "dirty": False,
        "date": "2026-11-29T16:00:00+00:00",
        "command": f"python -m c128a.bench {sheet}",
    }
