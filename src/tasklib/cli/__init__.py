"""The command line: composition, and the only place that prints."""
