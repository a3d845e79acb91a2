"""Pictures that are the same whenever their data are, and that name the data they were drawn from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def digest_of(data: Any) -> str:
    """A short digest of the data of a picture."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def new_figure(width: float, height: float) -> Any:
    """A figure of matplotlib whose text stays text."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams |= {"svg.hashsalt": "benchmarks", "svg.fonttype": "none"}
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path, digest: str = "") -> None:
    """Write a picture without a date; an SVG names the digest of its data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} | ({"Description": f"data {digest}"} if digest else {})
    figure.savefig(path, bbox_inches="tight", metadata=metadata if path.suffix == ".svg" else None)
    if path.suffix == ".svg":
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
