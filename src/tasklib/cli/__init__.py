"""The command line: composition, and the only place that prints."""

import tasklib.core  # noqa: F401 - first of all: it notices who else has put files into this package
