"""All guards, by topic."""

from tests.guards import claims, ends, fencing, gate, secrets, surroundings, values

GUARDS = (
    *fencing.GUARDS,
    *claims.GUARDS,
    *gate.GUARDS,
    *ends.GUARDS,
    *secrets.GUARDS,
    *surroundings.GUARDS,
    *values.GUARDS,
)
