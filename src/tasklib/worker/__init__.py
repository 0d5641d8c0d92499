"""The loops that claim tasks, run them and settle what came of them."""
