"""One store for all SQL engines: each verb is written once, as steps that a driver plays."""
