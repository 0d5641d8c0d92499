"""`python -m tasklib`: the same as the command `tasklib`."""

from tasklib.cli.main import main

if __name__ == "__main__":
    main()
