"""How fast tasklib is, beside what one would use instead and beside the bare database: `make bench`."""
