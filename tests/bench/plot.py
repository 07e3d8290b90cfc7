#!/usr/bin/env python3
"""Usage: plot.py FLAT.json > flat.svg

Draws what `commitq-bench --json flat` (or `all`) found: the cost of a claim beside other rows, and the speed while a purge
is blocked. Only Python's own library.
"""

import json
import sys

WIDTH, HEIGHT, PANEL, LEFT, TOP, PLOT = 860, 330, 430, 62, 46, (330, 220)
COLOURS = {"empty": "#777777", "completed": "#0072b2", "scheduled": "#d55e00", "queues": "#009e73", "jobs": "#0072b2"}


class Panel:
    """A plot with its own scales: both axes begin at 0."""

    def __init__(self, left, title, x_label, xs, x_names, most):
        self.left, self.xs, self.most = left + LEFT, xs, most
        self.parts = [
            text(left + LEFT, 22, title, weight="bold"),
            text(left + LEFT + PLOT[0] / 2, HEIGHT - 12, x_label, anchor="middle"),
        ]
        for step in range(5):
            value = most * step / 4
            y = self.y(value)
            self.parts.append(f'<line x1="{self.left}" y1="{y:.1f}" x2="{self.left + PLOT[0]}" y2="{y:.1f}" stroke="#ddd"/>')
            self.parts.append(text(self.left - 6, y + 4, f"{value:,.0f}", anchor="end"))
        for x, name in zip(xs, x_names):
            self.parts.append(text(self.x(x), TOP + PLOT[1] + 18, name, anchor="middle"))

    def x(self, value):
        first, last = self.xs[0], self.xs[-1]
        return self.left + PLOT[0] * (value - first) / (last - first)

    def y(self, value):
        return TOP + PLOT[1] * (1 - value / self.most)

    def line(self, name, points, row, label):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        colour = COLOURS[name]
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        self.parts += [f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
        if label:
            y = TOP + PLOT[1] - 14 * (row + 1)
            self.parts.append(f'<rect x="{self.left + 12}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
            self.parts.append(text(self.left + 28, y, label))


def text(x, y, content, anchor="start", weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{content}</text>'


def round_up(value):
    """To a number that divides by four into round ones."""
    step = 4 * 10 ** (len(str(int(value))) - 2)
    return -(-value // step) * step


def claims(figures):
    rows = [10_000, 100_000, 1_000_000]
    labels = {
        "empty": "nothing else",
        "completed": "completed jobs",
        "scheduled": "jobs for tomorrow",
        "queues": "jobs of 200 other queues",
    }
    series = {name: [figures[f"claim_us_{name}_{count}"] for count in rows] for name in labels}
    panel = Panel(0, "A claim of 100 jobs, µs, beside …", "rows of other jobs", [0, 1, 2],
                  [f"{count:,}" for count in rows], round_up(max(map(max, series.values()))))
    for row, (name, values) in enumerate(series.items()):
        panel.line(name, list(enumerate(values)), row, labels[name])
    return panel


def purge(figures):
    speeds = [value for name, value in sorted(figures.items()) if name.startswith("purge_blocked_jobs_per_s_")]
    xs = list(range(1, len(speeds) + 1))
    panel = Panel(PANEL, "Jobs/s while an old snapshot blocks the purge", "jobs finished since, in 10,000", xs,
                  [str(x) if x % 5 == 0 or x == 1 else "" for x in xs], round_up(max(speeds)))
    panel.line("jobs", list(zip(xs, speeds)), 0, "")
    return panel


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        figures = json.load(file)["figures"]
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for panel in (claims(figures), purge(figures)):
        print("\n".join(panel.parts))
    print("</svg>")


main()
