"""The kernel's own output for a scene, or the reason why there is none. Free of torch until it runs."""

from __future__ import annotations

from dataclasses import dataclass

from c128a.ui.cells import Scene, cell_at


@dataclass(frozen=True)
class KernelOutput:
    """What the kernel left in the buffer (values, flat; None where it cannot run), and what is to be said about it."""

    values: tuple[int, ...] | None
    sentence: str
    alarm: str | None = None

    def at(self, offset: int) -> int | None:
        """The kernel's value at a flat offset, None where it did not run."""
        return self.values[offset] if self.values is not None else None


def kernel_output(scene: Scene) -> KernelOutput:
    """Run both builds by the kernel and compare every cell with what the page draws."""
    try:
        from c128a.ui.cells_kernel import describe, kernel_buffer
    except ModuleNotFoundError as missing:
        return KernelOutput(
            None,
            f"The values are computed from the definitions: the kernel cannot run here ({missing.name} is missing).",
        )
    values = kernel_buffer(scene)
    wrong = [at for at in range(scene.cells) if values[at] != cell_at(scene, at).value]
    where = f"{scene.layout} rows, {scene.cells:,} cells"
    if wrong:
        return KernelOutput(
            values, f"The kernel ran ({describe()}).", f"In {len(wrong):,} cells of {where} the kernel differs."
        )
    return KernelOutput(
        values, f"The values are the kernel's own output ({where}; {describe()}). Every cell is as drawn above."
    )
