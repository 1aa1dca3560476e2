"""What the compiler made of a kernel: registers, spills, widths of loads and stores, instructions. Needs no GPU.

    python -m c128a.ptx            a table over every variant that `warmup()` compiles, for sm_90
    python -m c128a.ptx --json     the same as JSON

Triton ships ptxas and cuobjdump; a variant is compiled for the target and its machine code read.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from c128a.kernel import Variant


def machine_code(variant: Variant, arch: int = 90) -> dict[str, Any]:
    """Compile a variant for an NVIDIA architecture (90 is Hopper) and read what came out.

    store_bytes and load_bytes are the widths of one thread's accesses to global memory, widest first; waits are those
    for the kernel before, whose end a launch may overlap.
    """
    from triton import compile as compiled_by_triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = variant.kernel.function.arg_names
    constants = dict(zip(names[-len(variant.all_constants) :], variant.all_constants, strict=True))
    types = dict.fromkeys(variant.kernel.tensors, "*i32") | dict.fromkeys(variant.kernel.int64, "*i64")
    types |= dict.fromkeys(variant.kernel.integers, "i32") | dict.fromkeys(constants, "constexpr")
    aligned = variant.kernel.rows if variant.unit > 1 else ()
    hints = {(names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    source = ASTSource(variant.kernel.function, {name: types[name] for name in names}, constants, hints)
    kernel = compiled_by_triton(source, target=GPUTarget("cuda", arch, 32), options=variant.options)
    sass = kernel.asm["sass"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = {key: int(value) for key, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", told)}
    return {
        "registers": used["REG"],
        "spilled_bytes": used["STACK"] + used["LOCAL"],
        "shared_bytes": kernel.metadata.shared,
        "instructions": sass.count(";"),
        "store_bytes": _widths(sass, "STG"),
        "load_bytes": _widths(sass, "LDG"),
        "waits": kernel.asm["ptx"].count("griddepcontrol.wait"),
    }


def _widths(sass: str, operation: str) -> tuple[int, ...]:
    """Widths in bytes of the global accesses in machine code, widest first.

    >>> _widths("STG.E.128 [R2.64], R4 ; STG.E [R6.64], R8 ; STG.E [R6.64], R9 ;", "STG")
    (16, 4)
    """
    accesses = re.findall(rf"\b{operation}((?:\.\w+)*)", sass)
    found = {16 if ".128" in access else 8 if ".64" in access else 4 for access in accesses}
    return tuple(sorted(found, reverse=True))


def warmup_variants() -> dict[str, Variant]:
    """The variants that serving launches on Hopper, by a readable name."""
    from c128a.combine import combine_variant
    from c128a.kernel import tiled_variant
    from c128a.tiles import COMBINE_TILE, TILES

    tiled = {f"tiled {tile.rows} × {tile.cols}, {tile.warps} warps": tiled_variant(0, tile, 128, 2) for tile in TILES}
    name = f"from_positions {COMBINE_TILE.rows} × {COMBINE_TILE.cols}"
    combine = {
        f"{name}, whole rows": combine_variant(0),
        f"{name}, live prefix": combine_variant(0, live_prefix=True),
        f"{name}, a whole step": combine_variant(0, bases=True),
        f"{name}, a whole step with images": combine_variant(0, bases=True, spans=True),
    }
    return {name: replace(variant, overlap=True) for name, variant in (tiled | combine).items()}


def main(argv: list[str] | None = None) -> int:
    """Print the facts of every variant."""
    parser = argparse.ArgumentParser(prog="python -m c128a.ptx", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--arch", type=int, default=90, help="compute capability × 10 (default 90, Hopper)")
    options = parser.parse_args(argv)
    variants = warmup_variants()
    facts = pd.DataFrame([machine_code(variant, options.arch) for variant in variants.values()])
    facts.insert(0, "variant", list(variants))
    as_json = facts.to_json(orient="records", force_ascii=False, indent=1)
    print(as_json if options.json else facts.to_string(index=False))
    return 0


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "0"  # compiled, whatever this machine holds
    sys.exit(main())
