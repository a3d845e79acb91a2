"""Three of these programs in one process. The first counts on being so, and the last fails."""

import runpy
from pathlib import Path

for name in ("resets", "backward_inside", "failing_operator"):
    runpy.run_path(str(Path(__file__).with_name(f"{name}.py")), run_name="__main__")
