"""What the compiler made of a kernel: registers, spills, widths of loads and stores. Needs no GPU.

    python -m c128a.ptx                        a table over every variant that `warmup()` compiles, for sm_90
    python -m c128a.ptx --arch sm_120 gfx942   the same for other GPUs; `--arch all` for all of TARGETS
    python -m c128a.ptx --arch all --out F     the same as a record, which page 03 shows

Triton ships the assemblers of both makers; a variant is compiled for a target and its machine code read. That it
compiles says nothing about its time there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from c128a.kernel import Variant

# Hopper, the two Blackwells, MI300 and MI350: the name as the compiler has it, and the threads of a warp.
TARGETS = {"sm_90": 32, "sm_100": 32, "sm_120": 32, "gfx942": 64, "gfx950": 64}


def machine_code(variant: Variant, target: str = "sm_90") -> dict[str, Any]:
    """Compile a variant for one of TARGETS and read what came out.

    registers are those of a thread (vector registers on AMD); store_bytes and load_bytes the widths of one thread's
    accesses to global memory, widest first; waits those for the kernel before, whose end a launch may overlap on NVIDIA
    alone.

    Raises ValueError for another target.
    """
    from triton import compile as compiled_by_triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if target not in TARGETS:
        raise ValueError(f"arch is {target!r}; it must be one of {', '.join(TARGETS)}")
    nvidia = target.startswith("sm_")
    if not nvidia:
        variant = replace(variant, overlap=False)
    kernel = variant.kernel
    names, values = kernel.function.arg_names, variant.all_constants
    constants = dict(zip(names[-len(values) :], values, strict=True))
    types = dict.fromkeys(kernel.tensors, "*i32") | dict.fromkeys(kernel.int64, "*i64")
    types |= dict.fromkeys(kernel.integers, "i32") | dict.fromkeys(constants, "constexpr")
    aligned = kernel.rows if variant.unit > 1 else ()
    hints = {(names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    source = ASTSource(kernel.function, {name: types[name] for name in names}, constants, hints)
    gpu = GPUTarget("cuda", int(target[3:]), 32) if nvidia else GPUTarget("hip", target, TARGETS[target])
    compiled = compiled_by_triton(source, target=gpu, options=variant.options)
    found = _nvidia(compiled) if nvidia else _amd(compiled.asm["amdgcn"])
    return found | {"shared_bytes": compiled.metadata.shared}


def _nvidia(compiled: Any) -> dict[str, Any]:
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = {key: int(value) for key, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", told)}
    sass, widths = compiled.asm["sass"], {".128": 16, ".64": 8, "": 4}
    return {
        "registers": used["REG"],
        "spilled_bytes": used["STACK"] + used["LOCAL"],
        "store_bytes": _widths(sass, r"\bSTG(?:\.E)?(\.128|\.64|)\b", widths),
        "load_bytes": _widths(sass, r"\bLDG(?:\.E)?(\.128|\.64|)\b", widths),
        "waits": compiled.asm["ptx"].count("griddepcontrol.wait"),
    }


def _amd(assembly: str) -> dict[str, Any]:
    told = re.findall(r"\.(vgpr_count|vgpr_spill_count|sgpr_spill_count):\s*(\d+)", assembly)
    used, widths = {key: int(value) for key, value in told}, {"x4": 16, "x2": 8, "": 4}
    return {
        "registers": used["vgpr_count"],
        "spilled_bytes": 4 * (used["vgpr_spill_count"] + used["sgpr_spill_count"]),
        "store_bytes": _widths(assembly, r"\b(?:global|buffer)_store_dword(x4|x2|)\b", widths),
        "load_bytes": _widths(assembly, r"\b(?:global|buffer)_load_dword(x4|x2|)\b", widths),
        "waits": 0,
    }


def _widths(code: str, access: str, widths: dict[str, int]) -> list[int]:
    """Widths in bytes of the global accesses in machine code, widest first.

    >>> _widths("global_store_dwordx4 v[0:1], v2 \\n global_store_dword v0, v1", r"store_dword(x4|)", {"x4": 16, "": 4})
    [16, 4]
    """
    return sorted({widths[end] for end in re.findall(access, code)}, reverse=True)


def warmup_variants() -> dict[str, Variant]:
    """The variants that serving launches, by a readable name; on NVIDIA their launches overlap the kernel before."""
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
    """Print the facts of every variant, or write them as a record."""
    parser = argparse.ArgumentParser(prog="python -m c128a.ptx", description=__doc__.split("\n")[0])
    parser.add_argument("--arch", nargs="+", default=["sm_90"], choices=[*TARGETS, "all"], help="default sm_90")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--out", type=Path, help="write a record there")
    asked = parser.parse_args(argv)
    found = [
        {"variant": name, "arch": target, **machine_code(variant, target)}
        for target in (TARGETS if "all" in asked.arch else asked.arch)
        for name, variant in warmup_variants().items()
    ]
    try:
        if asked.out:
            from c128a.bench import records
            from c128a.bench.provenance import provenance

            with records.whole_file(asked.out) as file:
                command = " ".join(["python -m c128a.ptx", *(argv or sys.argv[1:])])
                file.write(records.as_text({**provenance(command), "kind": "compiled"}, findings=found))
        else:
            table = pd.DataFrame(found)
            print(table.to_json(orient="records", force_ascii=False, indent=1) if asked.json else table.to_string())
            sys.stdout.flush()
    except OSError as error:
        print(f"python -m c128a.ptx: nothing was written: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "0"  # compiled, whatever this machine holds
    sys.exit(main())
