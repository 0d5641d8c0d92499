"""Where a decision meets a store."""
