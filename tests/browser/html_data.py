"""What a page holds, read from its file: what the browser shows is held against it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

Data = dict[str, Any]


def capture_in(path: Path, number: int = 0) -> Data:
    """One capture of a page."""
    found = re.search(r'id="data">([^<]*)</script>', path.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))["captures"][number]


def line_with(capture: Data, text: str) -> str:
    """The hook of the first recorded source line that holds a text."""
    for source in capture["sources"]:
        for piece in source["pieces"]:
            for offset, line in enumerate(piece["lines"]):
                if text in line[0]:
                    return f"{source['path']}:{piece['first'] + offset}"
    raise AssertionError(f"no line with {text!r}")


def line_of(capture: Data, stack: int | None) -> set[str]:
    """The hooks of the lines that a stack is shown at."""
    if stack is None:
        return set()
    found = capture["stacks"][stack]
    return {f"{place[0]}:{place[1]}" for place in (found["line"], found["own"]) if place is not None}


def lines_of_kernel(capture: Data, hook: str) -> set[str]:
    """The lines that a kernel computes."""
    lowering, kernel = map(int, hook.split(":"))
    return {line for stack in capture["lowerings"][lowering]["kernels"][kernel]["stacks"] for line in line_of(capture, stack)}


def kernels_of_line(capture: Data, line: str, compilation: str) -> set[str]:
    """The kernels of a compilation that compute a line."""
    return {
        f"{place}:{number}"
        for place, lowering in enumerate(capture["lowerings"])
        if lowering["compilation"] == compilation
        for number in range(len(lowering["kernels"]))
        if line in lines_of_kernel(capture, f"{place}:{number}")
    }


def nodes_of_line(capture: Data, line: str, graph: int) -> set[str]:
    """The nodes of a graph that stand at a line."""
    nodes = capture["graphs"][graph]["nodes"]
    return {f"{graph}:{number}" for number, node in enumerate(nodes) if line in line_of(capture, node["stack"])}
