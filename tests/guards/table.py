"""All guards, by topic."""

from tests.guards import audit, claims, ends, fencing, gate, middleware, push, schedules, secrets, surroundings, values

GUARDS = (
    *fencing.GUARDS,
    *audit.GUARDS,
    *claims.GUARDS,
    *gate.GUARDS,
    *ends.GUARDS,
    *push.GUARDS,
    *schedules.GUARDS,
    *secrets.GUARDS,
    *surroundings.GUARDS,
    *values.GUARDS,
    *middleware.GUARDS,
)
