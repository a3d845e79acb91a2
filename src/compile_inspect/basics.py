"""Phase 1 of the tour: one model, every backend; what the first call costs and where that time goes.

python -m compile_inspect.basics
python -m compile_inspect.basics --target model.py:model --inputs model.py:inputs --explain
"""

from __future__ import annotations

from compile_inspect.tour.phases.basics import BackendComparison, run_backend_comparison

__all__ = ["BackendComparison", "run_backend_comparison"]

if __name__ == "__main__":
    from compile_inspect.tour.command_line import run_lesson_command

    run_lesson_command("basics")
