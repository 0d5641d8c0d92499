"""The command `tasklib`, and `python -m tasklib`."""

import gc


def main() -> None:
    gc.disable()  # until the command begins: see `cli/command.py`
    from tasklib.cli.main import main as command_line  # only then: most of what it would look at comes from imports

    command_line()


if __name__ == "__main__":
    main()
