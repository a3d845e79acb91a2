"""PyGRANSO's calling interface on top of `nonsmooth.minimize`: in a script, change only the imports.

    from nonsmooth.pygranso import pygranso, pygransoStruct

    def problem(X):
        ci = pygransoStruct()
        ci.c1 = 2**0.5 * X.x1 - 1
        return [8 * abs(X.x1**2 - X.x2) + (1 - X.x1) ** 2, ci, None]

    solution = pygranso({"x1": [1], "x2": [1]}, problem)

`nonsmooth.pygranso.pygranso`, `.pygransoStruct` and `.private.getNvar` exist too, so that `pygranso.` can be replaced by
`nonsmooth.pygranso.` in every import. docs/how-to/from-pygranso.md lists the options and what differs.
"""

# Importing a submodule makes it an attribute of this package. These two lines import the submodules first and then bind the
# function and the class to the same names. Later imports find the submodules already loaded and do not rebind the names.
from nonsmooth.pygranso.pygranso import pygranso
from nonsmooth.pygranso.pygransoStruct import pygransoStruct

__all__ = ["pygranso", "pygransoStruct"]
