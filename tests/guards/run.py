"""Takes each guard away in turn and shows the test that notices. `make guards`, or

    python -m tests.guards.run [-j JOBS] [WORD ...]     only guards with these words in their names

Works on copies of the tree, never on the tree itself. Exit code 1: a guard that nobody would miss, or tests that are
red by themselves. Exit code 2: the table no longer fits the code.
"""

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import NATS, POSTGRES, SEED
from tests.guards.guard import ROOT, Guard, Stale
from tests.guards.table import GUARDS
from tests.nats_servers import NatsServer
from tests.servers import QUICK, PostgresServer

TEST_SECONDS = 40
"""A guard whose loss makes a test wait for ever is noticed after this."""
RUN_SECONDS = 300
COPIED = ("src", "tests", "pyproject.toml")
PLUGINS = (
    "pytest_asyncio.plugin",
    "pytest_timeout",
    "_hypothesis_pytestplugin",
    "tasklib.testing.plugin",
    "xdist.plugin",
)
"""Named, because loading all that are installed takes longer than most of the tests."""
LEFT_OUT = shutil.ignore_patterns("__pycache__", "ui", "*.pyc")


@dataclass(frozen=True)
class Result:
    """How one run of pytest went: each case, and why it is red."""

    green: frozenset[str]
    red: dict[str, str]
    broken: dict[str, str]
    """Could not run at all: that proves nothing."""
    output: str


@dataclass(frozen=True)
class Found:
    guard: Guard
    seconds: float
    noticed: dict[str, str]
    """Test -> what it said."""
    trouble: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.guards.run", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="only guards with one of these in their names")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    given = parser.parse_args()
    # A shell starts what it puts in the background with Ctrl-C ignored; and a kill must not leave servers behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    chosen = [guard for guard in GUARDS if not given.words or any(word in guard.name for word in given.words)]
    if not chosen:
        say("no guard has such a name")
        return 2
    stale = list(stale_of(chosen))
    if stale:
        say("The table no longer fits the code:", *stale)
        return 2
    with ExitStack() as stack:
        environment = started(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tasklib-guards-")))
        trees = [copied(folder / str(number)) for number in range(given.jobs)]
        begun = time.monotonic()
        say(f"{len(chosen)} guards, {given.jobs} at a time; first all their tests as they are")
        red = unprovoked(chosen, trees[0], environment, given.jobs)
        if red:
            say("Red although nothing was taken away:", *red)
            return 1
        say(f"green, after {time.monotonic() - begun:.0f} s")
        found = proved(chosen, trees, environment)
        return told(found, time.monotonic() - begun)


def stale_of(guards: Iterable[Guard]) -> Iterable[str]:
    for guard in guards:
        try:
            guard.mutated(ROOT)
        except Stale as error:
            yield f"  {guard.name}: {error}"


def started(stack: ExitStack) -> dict[str, str]:
    """One PostgreSQL and one NATS for all runs."""
    environment = {**os.environ, SEED: os.environ.get(SEED, "1"), "PYTHONUNBUFFERED": "1"}
    if POSTGRES not in environment:
        postgres = PostgresServer(settings=QUICK)
        stack.callback(postgres.close)
        environment[POSTGRES] = postgres.start().dsn
    if NATS not in environment:
        nats = NatsServer()
        stack.callback(nats.close)
        environment[NATS] = nats.start().url
    return environment


def copied(tree: Path) -> Path:
    tree.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=LEFT_OUT)
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def unprovoked(guards: Sequence[Guard], tree: Path, environment: dict[str, str], jobs: int) -> list[str]:
    names = list(dict.fromkeys(test for guard in guards for test in guard.tests))
    result = pytest(names, tree, environment, "-n", str(jobs), seconds=3 * RUN_SECONDS)
    problems = [f"  {test}: {why}" for test, why in {**result.red, **result.broken}.items()]
    problems += [f"  {name}: no such test" for name in names if not any(_is(name, test) for test in result.green)]
    if problems or not result.green:
        problems.append(result.output[-3000:])
    return problems


def proved(guards: Sequence[Guard], trees: Sequence[Path], environment: dict[str, str]) -> list[Found]:
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)
    clock = iter(range(1_000_000_000, 2_000_000_000))

    def prove(guard: Guard) -> Found:
        tree = free.get()
        begun = time.monotonic()
        kept = {path: path.read_text() for path in guard.mutated(tree)}
        try:
            write(guard.mutated(tree), next(clock))
            return judged(guard, pytest(guard.tests, tree, environment), time.monotonic() - begun)
        finally:
            write(kept, next(clock))
            free.put(tree)

    done: list[Found] = []
    with ThreadPoolExecutor(len(trees)) as pool:
        try:
            for future in as_completed([pool.submit(prove, guard) for guard in guards]):
                done.append(future.result())
                progress(len(done), len(guards), done[-1])
        except BaseException:  # Ctrl-C: those under way end, the others do not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    order = {guard.name: place for place, guard in enumerate(guards)}
    return sorted(done, key=lambda found: order[found.guard.name])


def write(files: dict[Path, str], moment: int) -> None:
    """With a time of its own for each change: compiled code of the version before must not pass for this one's."""
    for path, text in files.items():
        path.write_text(text)
        os.utime(path, (moment, moment))


def pytest(
    names: Sequence[str], tree: Path, environment: dict[str, str], *more: str, seconds: float = RUN_SECONDS
) -> Result:
    report = tree / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--timeout={TEST_SECONDS}", "--tb=line", *more]
    options += [word for plugin in PLUGINS for word in ("-p", plugin)]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *names],
        cwd=tree,
        env={**environment, "PYTHONPATH": str(tree / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\nstopped after {seconds} s"
    return read(report, output)


def read(report: Path, output: str) -> Result:
    green, red, broken = set(), {}, {}
    cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
    for case in cases:
        test = f"{case.get('classname')}.{case.get('name')}"
        if (failure := case.find("failure")) is not None:
            red[test] = _first_line(failure.get("message", ""))
        elif (error := case.find("error")) is not None:
            broken[test] = _first_line(error.get("message", ""))
        else:
            green.add(test)
    return Result(frozenset(green), red, broken, output)


def judged(guard: Guard, result: Result, seconds: float) -> Found:
    noticed: dict[str, str] = {}
    missed = []
    for name in guard.tests:
        case = next((test for test in result.red if _is(name, test)), None)
        if case is None:
            missed.append(name)
        else:
            noticed[_short(case)] = result.red[case]
    if not missed:
        return Found(guard, seconds, noticed)
    ran = any(_is(name, test) for name in missed for test in result.green)
    why = "" if ran else f" (could not run: {next(iter(result.broken.values()), result.output[-1500:])})"
    return Found(guard, seconds, noticed, f"still green: {', '.join(missed)}{why}")


def told(found: Sequence[Found], seconds: float) -> int:
    width = max(len(each.guard.name) for each in found)
    say("", f"{'guard':<{width}}  seconds  noticed by")
    for each in found:
        names = ", ".join(each.noticed) or "nobody"
        say(f"{each.guard.name:<{width}}  {each.seconds:7.1f}  {names if not each.trouble else each.trouble}")
    missing = [each for each in found if each.trouble]
    say("", f"{len(found) - len(missing)} of {len(found)} guards are missed when they are gone; {seconds:.0f} s")
    for each in missing:
        say(f"NOT NOTICED: {each.guard.name}: {each.trouble}")
    return 1 if missing else 0


def progress(done: int, number: int, latest: Found) -> None:
    why = "NOT NOTICED" if latest.trouble else next(iter(latest.noticed.values()))
    sys.stderr.write(f"[{done:>3}/{number}] {latest.guard.name}: {why[:100]}\n")
    sys.stderr.flush()


def say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _is(name: str, case: str) -> bool:
    """Whether a case of the report is this test, or one of its cases."""
    file, *path = name.split("::")
    wanted = ".".join([file.removesuffix(".py").replace("/", "."), *path])
    return case == wanted or (not wanted.endswith("]") and case.startswith(f"{wanted}["))


def _short(case: str) -> str:
    base, bracket, rest = case.partition("[")
    return base.rpartition(".")[2] + bracket + rest


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


if __name__ == "__main__":
    sys.exit(main())
