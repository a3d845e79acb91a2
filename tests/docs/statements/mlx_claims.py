"""What docs/explanation/common-wrong-statements.md says about MLX, run."""

from __future__ import annotations

import re
import tempfile
from importlib.metadata import metadata
from pathlib import Path
from typing import Any


def main() -> None:
    import mlx.core as mx

    def waves(x: Any) -> Any:
        return mx.sin(x) + mx.cos(x)

    def primitives(result: Any) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.dot"
            mx.export_to_dot(str(path), result)
            return " ".join(re.findall(r'label ?="([^"]+)"', path.read_text()))

    def traces(inputs: list[Any], **options: bool) -> int:
        seen = []

        def traced(x: Any) -> Any:
            seen.append(x.shape)
            return mx.sin(x)

        compiled = mx.compile(traced, **options)
        for item in inputs:
            mx.eval(compiled(item))
        return len(seen)

    x = mx.array([1.0, 2.0, 3.0])
    lengths = [mx.ones(n) for n in (3, 3, 4, 4, 5)]
    print("device:", mx.default_device())
    print("lazy:", primitives(waves(x)))
    print("compiled:", primitives(mx.compile(waves)(x)))
    print("traces of five calls with three lengths:", traces(lengths))
    print("the same, shapeless:", traces(lengths, shapeless=True))
    other = [mx.ones(3), mx.ones((2, 2)), mx.ones(3).astype(mx.float16)]
    print("shapeless, other dimensions, other dtype:", traces(other, shapeless=True))
    print("extras:", *sorted(name for name in metadata("mlx").get_all("Provides-Extra") or [] if name.startswith("cuda")))


if __name__ == "__main__":
    main()
