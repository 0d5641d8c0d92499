"""All guards, by topic."""

from tests.guards import claims, ends, fencing, gate, middleware, push, secrets, surroundings, values

GUARDS = (
    *fencing.GUARDS,
    *claims.GUARDS,
    *gate.GUARDS,
    *ends.GUARDS,
    *push.GUARDS,
    *secrets.GUARDS,
    *surroundings.GUARDS,
    *values.GUARDS,
    *middleware.GUARDS,
)
