"""`python -m compile_inspect`: the same as the command `compile-inspect`."""

from compile_inspect.commands import main

if __name__ == "__main__":
    main()
