"""DBOS Transact (https://docs.dbos.dev): durable workflows, with queues."""

import signal
import threading
from collections.abc import Sequence

import psycopg
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from benchmarks.contender import Contender
from benchmarks.starts import mark

QUEUE: EnqueueOptions = {"queue_name": "bench", "workflow_name": "noop"}


@DBOS.workflow(name="noop")
def noop(number: int) -> int:
    mark(number)
    return number


class Peer(Contender):
    settings = (
        "queue polled every 10 ms (default 1 s), worker_concurrency 100, pool of 20 connections. It has no bulk "
        "enqueue: in bulk, all of a batch in one transaction (enqueue_in_transaction). Results stored."
    )
    knob = ("worker_concurrency", 100, (10, 100, 1000))

    def prepare(self) -> None:
        _launch(self.url, self.chosen)
        DBOS.destroy()

    def open(self) -> None:
        self.client = DBOSClient(system_database_url=self.url)

    def send(self, number: int) -> None:
        self.client.enqueue(QUEUE, number)

    def send_many(self, numbers: Sequence[int]) -> None:
        with self.client._sys_db.engine.begin() as connection:
            for number in numbers:
                self.client.enqueue_in_transaction(connection, QUEUE, number)

    def close(self) -> None:
        self.client.destroy()

    def done(self) -> int:
        with psycopg.connect(self.url) as connection:
            sql = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS' AND name = 'noop'"
            found = connection.execute(sql).fetchone()
            return int(found[0]) if found else 0

    def work(self) -> None:
        _launch(self.url, self.chosen)
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        stopped.wait()
        DBOS.destroy()


def _launch(url: str, concurrency: int) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "sys_db_pool_size": 20,
        "log_level": "WARNING",
        "application_version": "1",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue("bench", worker_concurrency=concurrency, polling_interval_sec=0.01)
