"""tasklib, as its users run it."""
