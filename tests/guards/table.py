"""All guards, by topic."""

from tests.guards import (
    alerts,
    audit,
    claims,
    ends,
    fencing,
    gate,
    middleware,
    push,
    schedules,
    secrets,
    surroundings,
    values,
)

GUARDS = (
    *fencing.GUARDS,
    *alerts.GUARDS,
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
