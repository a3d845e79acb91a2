"""Python imports a module of this name at start-up; `compile-inspect run` puts this one first on PYTHONPATH.

It arranges for the recorder to start when the program imports torch, steps out of the way, and lets the machine's own
`sitecustomize` run as usual. Nothing that the program might have its own version of is imported before the program.
"""

import importlib.machinery
import importlib.util
import os.path
import sys

_here = os.path.dirname(__file__)
sys.path[:] = [entry for entry in sys.path if entry != _here]

try:
    try:
        from compile_inspect.capture.autostart import prepare
    except ModuleNotFoundError:
        # Run from a checkout that is not installed, by an interpreter that was given its path.
        sys.path.append(os.path.abspath(os.path.join(_here, "..", "..", "..")))
        from compile_inspect.capture.autostart import prepare
    prepare()
except Exception:  # the program comes first: a recorder that cannot start stays out of it
    pass

# The machine's own `sitecustomize`, which this one stands in front of, takes its place; its errors are its own.
_own = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _own is not None and _own.loader is not None:
    sys.modules["sitecustomize"] = importlib.util.module_from_spec(_own)
    _own.loader.exec_module(sys.modules["sitecustomize"])
