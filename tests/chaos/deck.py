"""All faults: importing a module of faults puts them on the list."""

from tests.chaos import line_faults, process_faults, row_faults, server_faults, task_faults
from tests.chaos.faults import Registered, faults_for

MODULES = (line_faults, process_faults, row_faults, server_faults, task_faults)


def deck(backend: str, *, brief: bool = False, soak: bool = False) -> list[Registered]:
    assert MODULES
    return faults_for(backend, brief=brief, soak=soak)
