"""What the compiler made of a kernel: registers, spills, widths of loads and stores, instructions. Needs no GPU.

    python -m c128a.ptx            a table over every variant that `warmup()` compiles, for sm_90
    python -m c128a.ptx --json     the same as JSON

Triton ships ptxas and cuobjdump; a variant is compiled for the target and its machine code read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from c128a.kernel import Variant


@dataclass(frozen=True)
class MachineCode:
    """Facts of one compiled variant: bytes are those of one thread's access."""

    variant: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    instructions: int
    store_bytes: tuple[int, ...]  # widths of the global stores of the code, widest first
    load_bytes: tuple[int, ...]


def machine_code(name: str, variant: Variant, arch: int = 90) -> MachineCode:
    """Compile a variant for an NVIDIA architecture (90 is Hopper) and read what came out."""
    from triton.backends.compiler import GPUTarget

    kernel = variant.compile(GPUTarget("cuda", arch, 32))
    sass = kernel.asm["sass"]
    registers, stack, local = _resources(kernel.asm["cubin"])
    return MachineCode(
        variant=name,
        registers=registers,
        spilled_bytes=stack + local,
        shared_bytes=kernel.metadata.shared,
        instructions=len(
            re.findall(r"^\s*(?:\[[^]]*\]|[-:0-9A-Z]+)?\s*@?!?[UP0-9T]*\s*[A-Z][A-Z0-9_.]+.*;", sass, re.M)
        ),
        store_bytes=_widths(sass, "STG"),
        load_bytes=_widths(sass, "LDG"),
    )


def _widths(sass: str, operation: str) -> tuple[int, ...]:
    """Widths in bytes of the global accesses in machine code, widest first.

    >>> _widths("STG.E.128 [R2.64], R4 ; STG.E [R6.64], R8 ; STG.E [R6.64], R9 ;", "STG")
    (16, 4)
    """
    found = {128: 16, 64: 8}
    suffixes = re.findall(rf"\b{operation}((?:\.\w+)*)", sass)
    bits = (int(match[1]) if (match := re.search(r"\.(64|128)\b", suffix)) else 32 for suffix in suffixes)
    return tuple(sorted({found.get(each, 4) for each in bits}, reverse=True))


def _resources(cubin: bytes) -> tuple[int, int, int]:
    """Registers a thread, bytes of stack and of local memory, from cuobjdump."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        tool = knobs.nvidia.cuobjdump.path
        text = subprocess.run([tool, "-res-usage", str(path)], capture_output=True, text=True, check=True).stdout
    numbers = {key: int(value) for key, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", text)}
    return numbers["REG"], numbers["STACK"], numbers["LOCAL"]


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
    facts = [machine_code(name, variant, options.arch) for name, variant in warmup_variants().items()]
    if options.json:
        print(json.dumps([asdict(fact) for fact in facts], ensure_ascii=False, indent=1))
        return 0
    print(f"{'variant':42} {'registers':>9} {'spilled':>7} {'shared':>6} {'instr.':>6}  stores   loads (bytes)")
    for fact in facts:
        stores, loads = (",".join(map(str, widths)) for widths in (fact.store_bytes, fact.load_bytes))
        print(
            f"{fact.variant:42} {fact.registers:9} {fact.spilled_bytes:7} {fact.shared_bytes:6} "
            f"{fact.instructions:6}  {stores:8} {loads}"
        )
    return 0


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "0"  # compiled, whatever this machine holds
    sys.exit(main())
