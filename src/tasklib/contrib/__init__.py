"""Bridges to other libraries. Each needs an extra of its own; nothing else in tasklib imports them."""
