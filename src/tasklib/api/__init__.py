"""The Python APIs: thin faces on the engine."""
