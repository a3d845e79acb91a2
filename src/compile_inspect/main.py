"""All five phases of the tour and its chapters, and a report of what was measured.

python -m compile_inspect.main
"""

from __future__ import annotations

from compile_inspect.commands.tour import main

if __name__ == "__main__":
    main()
