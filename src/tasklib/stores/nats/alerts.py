"""The states of alert rules."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

from tasklib.core.alert_state import Alert
from tasklib.stores.nats import keys
from tasklib.stores.nats.clock import instant, written
from tasklib.stores.nats.kv import Entry, KeyValueStore

_INSTANTS = ("since", "fired_at", "over_at", "try_at")


async def alerts(kv: KeyValueStore) -> list[Alert]:
    entries = await kv.run(lambda: kv.under(keys.ALERT))
    return sorted((_alert(entry) for entry in entries), key=lambda alert: alert.name)


async def put_alert(kv: KeyValueStore, alert: Alert) -> bool:
    fields = {name: written(value) if isinstance(value, datetime) else value for name, value in asdict(alert).items()}

    def change(entry: Entry | None) -> bytes | None:
        if entry is not None and _alert(entry).version != alert.version - 1:
            return None
        return json.dumps(fields).encode()

    return await kv.update(keys.alert(alert.name), change) is not None


def _alert(entry: Entry) -> Alert:
    fields = json.loads(entry.data)
    return Alert(**fields | {name: instant(fields[name]) for name in _INSTANTS if fields[name] is not None})
