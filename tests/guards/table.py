"""All guards, by topic."""

from tests.guards import claims, fencing, gate, secrets, values

GUARDS = (*fencing.GUARDS, *claims.GUARDS, *gate.GUARDS, *secrets.GUARDS, *values.GUARDS)
