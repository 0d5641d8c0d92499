"""Select and write; never decide. One package for each engine, all with the verbs of `protocol.Store`."""
