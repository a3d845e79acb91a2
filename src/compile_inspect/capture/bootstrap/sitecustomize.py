"""Python imports a module with this name at startup; `compile-inspect run` puts this one first on PYTHONPATH.

It arranges for the recorder to start when the program imports torch, removes itself from the path, and runs the machine's own
`sitecustomize` as usual. It imports no module that the program might replace with its own version.
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
        # The package is not installed: use the checkout that contains this file.
        sys.path.append(os.path.abspath(os.path.join(_here, "..", "..", "..")))
        from compile_inspect.capture.autostart import prepare
    prepare()
except Exception:  # a recorder that cannot start must not disturb the program
    pass

# Load the machine's own `sitecustomize`, which this module shadows; its errors are not caught.
_own = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _own is not None and _own.loader is not None:
    sys.modules["sitecustomize"] = importlib.util.module_from_spec(_own)
    _own.loader.exec_module(sys.modules["sitecustomize"])
