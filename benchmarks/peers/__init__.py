"""What one would use instead, each at its best documented settings."""
