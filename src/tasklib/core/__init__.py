"""Pure values and decisions: no I/O, no clock, no event loop, no logging."""

from tasklib.installed import check_package

check_package()
