"""Phase 2 of the tour: the graph that Dynamo captures, compared with the lines it came from.

python -m compile_inspect.dynamo_capture
python -m compile_inspect.dynamo_capture --target model.py:model --inputs model.py:inputs
"""

from __future__ import annotations

from compile_inspect.tour.phases.dynamo_capture import DynamoExploration, run_dynamo_exploration

__all__ = ["DynamoExploration", "run_dynamo_exploration"]

if __name__ == "__main__":
    from compile_inspect.tour.command_line import run_lesson_command

    run_lesson_command("dynamo_capture")
