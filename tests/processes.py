"""Processes that begin together, and such as have ended."""

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack

import psutil


def said_together(commands: Sequence[Sequence[str]]) -> list[str]:
    """The lines that these programs print. Each says `ready` and waits for a line before it begins; none may fail, or
    complain."""
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        processes = []
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
            stack.callback(process.kill)  # does nothing to one that has ended
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=60) for process in processes]
        ends = [(process.returncode, errors) for process, (_, errors) in zip(processes, answers, strict=True)]
    assert ends == [(0, "")] * len(ends), ends
    return [line for said, _ in answers for line in said.splitlines()]


def has_ended(pid: int) -> bool:
    """Gone, or waiting to be reaped by whoever is its parent by now."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
