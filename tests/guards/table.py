"""All guards, by topic."""

from tests.guards import claims, ends, fencing, gate, secrets, values

GUARDS = (*fencing.GUARDS, *claims.GUARDS, *gate.GUARDS, *ends.GUARDS, *secrets.GUARDS, *values.GUARDS)
