"""Pictures of a report: confusion of classes and of lengths, and the reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from decomp_gauntlet.confusion import CLASSES, Bin, Matrix, classes, lengths, reliability
from decomp_gauntlet.report import Report
from decomp_router.plan import LENGTH_CLASSES


class PlotsError(RuntimeError):
    """matplotlib is not installed; the message says how to get it."""


def draw(report: Report, target: Path) -> None:
    """Three panels into TARGET, SVG or PNG by its suffix. Raises PlotsError, OSError, ValueError."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotsError("pictures need matplotlib: pip install 'decomp-router[plots]'") from error
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _matrix(left, classes(report.scores), CLASSES, "class")
    _matrix(middle, lengths(report.scores), [str(n) for n in range(LENGTH_CLASSES)], "length class of an answer")
    _reliability(right, reliability(report.scores))
    figure.suptitle(f"{report.name}: {len(report.scores)} prompts, {len(report.dangerous)} dangerous false parallels")
    figure.savefig(target)


def _matrix(axes, counts: Matrix, names: Sequence[str], title: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Rows are labels, columns predictions; shades are shares of a row."""
    shares = [[count / max(sum(row), 1) for count in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            axes.text(j, i, str(count), ha="center", va="center", color="white" if shares[i][j] > 0.5 else "black")
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted", ylabel="labelled", title=title)


def _reliability(axes, bins: Sequence[Bin]) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.plot([b.stated for b in bins], [b.observed for b in bins], marker="o")
    for b in bins:
        axes.annotate(str(b.cases), (b.stated, b.observed), textcoords="offset points", xytext=(6, -10), fontsize=8)
    axes.set(xlabel="stated chance that a fan-out is safe", ylabel="share that was", title="reliability (cases)")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
