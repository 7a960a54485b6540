"""A plan as an SVG picture: what can run at the same time stands in one column, arrows show what needs what."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import networkx as nx

from decomp_router.plan import Plan, Subtask

_WIDTH, _GAP_X, _GAP_Y, _LINE, _PAD, _MARGIN = 260, 70, 18, 18, 12, 20
_CHARACTERS = 34
_LONGEST = 5
_COLOURS = ("#e8f1fb", "#d3e5f7", "#b4d3ef", "#8fbce4")
"""By length class: the longer the expected answer, the darker."""


@dataclass(frozen=True)
class _Box:
    task: Subtask
    lines: list[str]
    x: int
    y: int

    @property
    def height(self) -> int:
        return 2 * _PAD + _LINE * (len(self.lines) + 1)


def svg(plan: Plan) -> str:
    """The picture, as SVG text."""
    boxes = _placed(plan)
    width = max((box.x + _WIDTH for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0) + _MARGIN
    root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}",
                      width=str(width), height=str(height))  # fmt: skip
    style = ET.SubElement(root, "style")
    style.text = "text{font:13px sans-serif;fill:#12263a}.id{font-weight:bold}path{fill:none;stroke:#5b7083}"
    for box in boxes.values():
        for parent in box.task.deps:
            _arrow(root, boxes[parent], box)
    for box in boxes.values():
        _draw(root, box)
    return ET.tostring(root, encoding="unicode") + "\n"


def _placed(plan: Plan) -> dict[str, _Box]:
    boxes: dict[str, _Box] = {}
    for column, step in enumerate(nx.topological_generations(plan.graph)):
        y = _MARGIN
        for task_id in sorted(step, key=lambda task_id: plan.subtask(task_id).start):
            task = plan.subtask(task_id)
            text = textwrap.shorten(_printable(plan.text(task)), _CHARACTERS * _LONGEST, placeholder=" ...")
            box = _Box(task, textwrap.wrap(text, _CHARACTERS), _MARGIN + column * (_WIDTH + _GAP_X), y)
            boxes[task_id] = box
            y += box.height + _GAP_Y
    return boxes


def _printable(text: str) -> str:
    """XML holds no control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def _arrow(root: ET.Element, parent: _Box, child: _Box) -> None:
    x1, y1 = parent.x + _WIDTH, parent.y + parent.height // 2
    x2, y2 = child.x, child.y + child.height // 2
    bend = (x2 - x1) // 2
    ET.SubElement(root, "path", d=f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2 - 6},{y2}")
    ET.SubElement(root, "path", d=f"M{x2 - 7},{y2 - 4} L{x2},{y2} L{x2 - 7},{y2 + 4}")


def _draw(root: ET.Element, box: _Box) -> None:
    ET.SubElement(root, "rect", x=str(box.x), y=str(box.y), width=str(_WIDTH), height=str(box.height), rx="8",
                  fill=_COLOURS[box.task.length], stroke="#5b7083")  # fmt: skip
    for number, line in enumerate([box.task.id, *box.lines]):
        place = {"x": str(box.x + _PAD), "y": str(box.y + _PAD + _LINE * (number + 1) - 5)}
        ET.SubElement(root, "text", place, **({"class": "id"} if number == 0 else {})).text = line
