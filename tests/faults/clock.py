"""A process whose clock is wrong, as seen from Python: `env(folder, seconds)` is the environment to start it in.

The module `sitecustomize` that it writes is loaded before anything else. It moves the wall clock and leaves the
monotonic one alone, which is what a machine with a wrong date has.
"""

from pathlib import Path

from tests.faults.packages import faketime

SHIM = """
import datetime, os, time

shift = float(os.environ["TASKLIB_TEST_CLOCK_SHIFT"])
right, right_ns = time.time, time.time_ns
time.time = lambda: right() + shift
time.time_ns = lambda: right_ns() + int(shift * 1e9)

class Wrong(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)

datetime.datetime = Wrong
"""


def env(folder: Path, seconds: float) -> dict[str, str]:
    shim = folder / "shim"
    shim.mkdir(exist_ok=True)
    (shim / "sitecustomize.py").write_text(SHIM)
    return {"PYTHONPATH": str(shim), "TASKLIB_TEST_CLOCK_SHIFT": str(seconds)}


def faketime_env(seconds: float) -> dict[str, str]:
    """The same by libfaketime, for everything in the process, C included."""
    library = faketime()
    if library is None:
        raise RuntimeError("this takes libfaketime: apt-get install libfaketime, which `make faults` does as root")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{seconds:+.0f}",
        **_STEADY,
    }


def settable_env(file: Path) -> dict[str, str]:
    """The same, by as many seconds as the file says, whenever it is written anew by `set_clock`."""
    env = faketime_env(0)
    del env["FAKETIME"]
    set_clock(file, 0)
    return {**env, "FAKETIME_TIMESTAMP_FILE": str(file)}


def set_clock(file: Path, seconds: float) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(f"{seconds:+.0f}\n")
    draft.replace(file)


_STEADY = {
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_NO_CACHE": "1",
}
"""The wall clock alone, and at once."""
