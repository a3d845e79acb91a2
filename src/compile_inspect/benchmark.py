"""Phase 5 of the tour: eager and compiled calls over batch sizes, what the build costs, and when it pays back.

python -m compile_inspect.benchmark
python -m compile_inspect.benchmark --target model.py:model --inputs model.py:inputs
"""

from __future__ import annotations

from compile_inspect.tour.phases.benchmark import BenchmarkSuite, run_benchmark_suite

__all__ = ["BenchmarkSuite", "run_benchmark_suite"]

if __name__ == "__main__":
    from compile_inspect.tour.command_line import run_lesson_command

    run_lesson_command("benchmark")
