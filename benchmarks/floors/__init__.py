"""The bare database: what is left when there is no queue around it."""
