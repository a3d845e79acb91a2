"""Every lesson of the tour, and a report of the measurements.

python -m compile_inspect.main
"""

from __future__ import annotations

from compile_inspect.commands.tour import main

if __name__ == "__main__":
    main()
