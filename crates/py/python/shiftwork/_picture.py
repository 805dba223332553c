"""Figures that notebooks show. Only imported where matplotlib is needed."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["Picture"]


class Picture(Figure):
    """A figure that belongs to no window, and that notebooks show by themselves."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()
