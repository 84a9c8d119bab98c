"""`python -m equisep` is the command `equisep`."""

from equisep.cli.app import main

if __name__ == "__main__":
    main()
