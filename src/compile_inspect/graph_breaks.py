"""Phase 3 of the tour: models that break the graph, and fixes that are checked to compute the same results.

python -m compile_inspect.graph_breaks
python -m compile_inspect.graph_breaks --target model.py:model --inputs model.py:inputs
"""

from __future__ import annotations

from compile_inspect.tour.phases.graph_breaks import FixedGraphBreaks, run_fix_graph_breaks

__all__ = ["FixedGraphBreaks", "run_fix_graph_breaks"]

if __name__ == "__main__":
    from compile_inspect.tour.command_line import run_lesson_command

    run_lesson_command("graph_breaks")
