"""Line charts on logarithmic scales as SVG, without a plotting library.

The background is always white, so that a chart is readable on light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TypeAlias

Points: TypeAlias = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 48, 48
COLOURS = ("#0b6e4f", "#c2410c", "#1d4ed8", "#a16207", "#7e22ce", "#475569")
LABEL_PX = 15  # minimum distance between labels


def log_log(title: str, lines: Mapping[str, Points]) -> str:
    """One line per name. The first one is Nacre's and is drawn thicker."""
    drawn = {name: sorted(points) for name, points in lines.items() if points}
    if not drawn:
        return _page(title, [])
    across = _Scale([x for points in drawn.values() for x, _ in points], LEFT, WIDTH - RIGHT)
    up = _Scale([y for points in drawn.values() for _, y in points], HEIGHT - BOTTOM, TOP)
    labels = _apart({name: up(points[-1][1]) for name, points in drawn.items()})
    parts = _grid(across, up)
    for at, name in reversed(list(enumerate(lines))):  # Nacre last, so that it is on top
        if name in drawn:
            place = [(across(x), up(y)) for x, y in drawn[name]]
            label = f"{name} {_short(drawn[name][-1][1])}"
            parts += _line(place, label, labels[name], COLOURS[at % len(COLOURS)], bold=at == 0)
    return _page(title, parts)


def _line(place: Points, label: str, label_y: float, colour: str, *, bold: bool) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    weight = ' font-weight="bold"' if bold else ""
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{3.5 if bold else 1.75}"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4.5 if bold else 3}" fill="{colour}"/>' for x, y in place),
        f'<text x="{place[-1][0] + 10:.1f}" y="{label_y + 4:.1f}" fill="{colour}"{weight}>{escape(label)}</text>',
    ]


class _Scale:
    """A logarithmic scale between the powers of ten that enclose all values."""

    def __init__(self, values: Sequence[float], start_px: float, end_px: float) -> None:
        self._low = math.floor(math.log10(min(values)))
        self._high = max(self._low + 1, math.ceil(math.log10(max(values))))
        self.start_px, self.end_px = start_px, end_px

    def __call__(self, value: float) -> float:
        return self.start_px + (math.log10(value) - self._low) / (self._high - self._low) * (
            self.end_px - self.start_px
        )

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self._low, self._high + 1)]


def _grid(across: _Scale, up: _Scale) -> list[str]:
    parts = []
    for value in across.ticks:
        x = f"{across(value):.1f}"
        parts.append(f'<line x1="{x}" x2="{x}" y1="{up.start_px}" y2="{up.end_px}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{x}" y="{up.start_px + 20}" text-anchor="middle">{value:,.0f}</text>')
    for value in up.ticks:
        y = up(value)
        ends = f'x1="{across.start_px}" x2="{across.end_px}"'
        parts.append(f'<line {ends} y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{across.start_px - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    return parts


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """The heights of labels: as close to the end of their line as possible without overlapping."""
    placed: dict[str, float] = {}
    lowest = -math.inf
    for name in sorted(heights, key=lambda each: heights[each]):
        lowest = max(heights[name], lowest + LABEL_PX)
        placed[name] = lowest
    over = lowest - (HEIGHT - BOTTOM)
    return {name: y - max(0.0, over) for name, y in placed.items()}


def _tick(value: float) -> str:
    return f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"


def _short(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def _page(title: str, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    font = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12"'
    named = f'role="img" aria-label="{escape(title)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} fill="#374151" {named}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="28" font-size="15" font-weight="600" fill="#111827">{escape(title)}</text>',
        *parts,
        "</svg>",
        "",
    ]
    return "\n".join(lines)
