"""Enqueue, get and refresh, sync and async; what is refused; transactions; signals of an enqueue."""

import uuid
from datetime import datetime, timedelta
from unittest import skipUnless

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.test import TestCase, override_settings
from django.utils import timezone

from jobs import tasks
from jobs.cases import POSTGRES, QueueTestCase
from tasklib import TaskValidationError, list_tasks
from tasklib.contrib.django import TasklibBackend, TasklibTask, task
from tasklib.contrib.django.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from tasklib.core.cron import every
from tasklib.testing.django import task_queue

BACKEND = {"BACKEND": "tasklib.contrib.django.TasklibBackend"}


def configured(**options):
    return override_settings(TASKS={"default": {**BACKEND, "QUEUES": ["default", "urgent"], "OPTIONS": options}})


class BackendTests(QueueTestCase):
    def test_it_is_the_backend_and_supports_all_there_is(self):
        backend = task_backends["default"]
        self.assertIsInstance(backend, TasklibBackend)
        supported = ("supports_defer", "supports_async_task", "supports_get_result", "supports_priority")
        self.assertTrue(all(getattr(backend, name) for name in supported))

    def test_enqueue(self):
        for each in (tasks.add, tasks.add_async):
            result = each.enqueue(1, b=3)
            self.assertEqual((result.status, result.task), (TaskResultStatus.READY, each))
            self.assertEqual((result.args, result.kwargs), ([1], {"b": 3}))
            self.assertEqual((result.started_at, result.finished_at, result.errors), (None, None, []))
            self.assertEqual((result.attempts, result.backend), (0, "default"))
            self.assertEqual(uuid.UUID(result.id).version, 7)
            self.assertIsNotNone(result.enqueued_at)
            with self.assertRaisesMessage(ValueError, "Task has not finished yet"):
                result.return_value  # noqa: B018

    async def test_enqueue_async(self):
        for each in (tasks.add, tasks.add_async):
            result = await each.aenqueue(1)
            self.assertEqual((result.status, result.args, result.kwargs), (TaskResultStatus.READY, [1], {}))
            self.assertEqual(await each.aget_result(result.id), result)

    def test_get_and_refresh(self):
        result = tasks.add.using(priority=7).enqueue(1, b=3)
        found = task_backends["default"].get_result(result.id)
        self.assertEqual(found, result)
        self.assertEqual(tasks.add.get_result(result.id).task.priority, 7)
        self.queue.drain()
        self.assertEqual(found.status, TaskResultStatus.READY)
        found.refresh()
        self.assertEqual((found.status, found.return_value), (TaskResultStatus.SUCCESSFUL, 4))
        self.assertTrue(found.enqueued_at <= found.started_at <= found.finished_at)
        self.assertTrue(found.is_finished)

    async def test_get_and_refresh_async(self):
        result = await tasks.add_async.aenqueue(1)
        await self.queue.adrain()
        await result.arefresh()
        self.assertEqual(result.return_value, 3)

    @skipUnless(POSTGRES, "on Django's own connection")
    def test_each_is_one_query(self):
        with self.assertNumQueries(1):
            result = tasks.add.enqueue(1)
        with self.assertNumQueries(1):
            task_backends["default"].get_result(result.id)
        with self.assertNumQueries(1):
            result.refresh()

    def test_ids_that_are_missing_or_malformed(self):
        for wrong in (str(uuid.uuid4()), "123", "", "x" * 500):
            with self.assertRaises(TaskResultDoesNotExist):
                task_backends["default"].get_result(wrong)

    async def test_ids_that_are_missing_or_malformed_async(self):
        for wrong in (str(uuid.uuid4()), "123"):
            with self.assertRaises(TaskResultDoesNotExist):
                await task_backends["default"].aget_result(wrong)

    def test_what_is_not_a_task_of_django_has_no_result_here(self):
        handle = tasks.plain.submit(1)  # on the same queue: tasklib's own functions use it
        self.assertEqual(self.queue.tasks()[0].id, handle.id)
        with self.assertRaises(TaskResultDoesNotExist):
            task_backends["default"].get_result(str(handle.id))

    def test_the_result_of_another_task_is_refused(self):
        result = tasks.add.enqueue(1)
        with self.assertRaisesMessage(Exception, "does not match"):
            tasks.anything.get_result(result.id)

    def test_what_is_no_json_is_refused_and_nothing_is_stored(self):
        for wrong in ({"a": object()}, {"a": timezone.now()}, {"a": {1, 2}}):
            with self.assertRaises(TypeError):
                tasks.add.enqueue(**wrong)
        self.assertEqual(self.queue.tasks(), [])

    def test_arguments_that_the_function_does_not_take_are_refused(self):
        for args, kwargs in (((), {}), ((1, 2, 3), {}), ((1,), {"c": 1})):
            with self.assertRaises(TaskValidationError):
                tasks.add.enqueue(*args, **kwargs)
        tasks.with_context.enqueue(extra=1)
        self.assertEqual(len(self.queue.tasks()), 1)

    def test_arguments_come_back_as_they_were_given(self):
        given = (1, (2, [3.5]), None, "text", True)
        result = tasks.anything.enqueue(*given, priority=1, connection="x")
        self.queue.drain()
        result.refresh()
        normal = [1, [2, [3.5]], None, "text", True]
        self.assertEqual(result.return_value, [normal, {"priority": 1, "connection": "x"}])

    def test_priorities_and_queues_out_of_range(self):
        for priority in (-101, 101, 1.5):
            with self.assertRaises(InvalidTask):
                tasks.add.using(priority=priority)
        for priority in (-100, 0, 100):
            tasks.add.using(priority=priority).enqueue(1)
        self.assertEqual([row.priority for row in self.queue.tasks()], [-100, 0, 100])
        with self.assertRaisesMessage(InvalidTask, "Queue 'unknown' is not valid"):
            tasks.add.using(queue_name="unknown")
        with self.assertRaisesMessage(InvalidTask, "Queue 'elsewhere' is not valid"):
            self.of_other_settings().enqueue(1)
        with self.assertRaises(InvalidTask):
            tasks.add.using(run_after=datetime(2030, 1, 1))

    def of_other_settings(self):
        with override_settings(TASKS={"default": {**BACKEND, "QUEUES": ["elsewhere"]}}):
            return tasks.add.using(queue_name="elsewhere")

    async def test_a_queue_is_looked_at_again_by_an_async_enqueue(self):
        with self.assertRaisesMessage(InvalidTask, "Queue 'elsewhere' is not valid"):
            await self.of_other_settings().aenqueue(1)
        self.assertEqual(await sync_to_async(self.queue.tasks)(), [])

    def test_names_are_module_paths(self):
        tasks.add.enqueue(1)
        tasks.urgent.enqueue()
        tasks.add.using(queue_name="urgent").enqueue(1)
        found = [row.name for row in self.queue.tasks()]
        self.assertEqual(found, ["jobs.tasks.add", "jobs.tasks.urgent", "jobs.tasks.add@urgent"])
        self.assertEqual(len(list_tasks()), 3)

    def test_without_a_time_there_is_none(self):
        for use_tz in (True, False):
            with override_settings(USE_TZ=use_tz):
                self.assertIsNone(tasks.add.get_result(tasks.add.enqueue(1).id).task.run_after)

    @override_settings(USE_TZ=False)
    def test_times_without_zones(self):
        result = tasks.add.using(run_after=datetime(2100, 1, 1, 12)).enqueue(1)
        result.refresh()
        self.assertTrue(timezone.is_naive(result.enqueued_at))
        found = tasks.add.get_result(result.id)
        self.assertEqual(found.task.run_after, datetime(2100, 1, 1, 12))

    def test_a_unique_task_is_enqueued_once(self):
        first, again, other = tasks.once.enqueue(1), tasks.once.enqueue(1), tasks.once.enqueue(2)
        self.assertEqual(first.id, again.id)
        self.assertNotEqual(first.id, other.id)
        self.assertEqual(len(self.queue.tasks()), 2)

    def test_what_tasklib_adds_to_a_task(self):
        tasks.fragile.enqueue("/nowhere")
        (row,) = self.queue.tasks()
        self.assertEqual((row.max_retries, row.timeout_seconds, row.tags), (2, 30, {"team": "parcels"}))
        tasks.fails.enqueue()
        self.assertEqual(self.queue.tasks()[1].max_retries, 0)
        for wrong in ({"max_retries": -5}, {"retry_for": "OSError"}, {"no_retry_for": []}):
            with self.assertRaisesMessage(InvalidTask, *wrong):
                _defined(**wrong)
        with self.assertRaisesMessage(InvalidTask, "missing a required argument: 'needed'"):
            _defined(schedule=every(60))

    def test_with_another_backend_our_decorator_is_djangos_own(self):
        dummy = type(task_backends["dummy"])
        with override_settings(TASKS={"default": {"BACKEND": f"{dummy.__module__}.{dummy.__name__}"}}):
            made = task(max_retries=3)(tasks.add.func)
            self.assertNotIsInstance(made, TasklibTask)
            made.enqueue(1)
            self.assertEqual(len(task_backends["default"].results), 1)
        self.assertEqual(self.queue.tasks(), [])

    async def test_the_signal_and_the_log_of_an_enqueue(self):
        heard = []

        def hear(sender, task_result, **more):
            heard.append((sender, task_result))

        task_enqueued.connect(hear)
        self.addCleanup(task_enqueued.disconnect, hear)
        with self.assertLogs(tasks.LOGGER, "DEBUG") as logs:
            results = [await sync_to_async(tasks.add.enqueue)(1), await tasks.add.aenqueue(1)]
        self.assertEqual(heard, [(TasklibBackend, result) for result in results])
        for result, said in zip(results, logs.output, strict=True):
            self.assertRegex(said, f"{result.id}.*enqueued")


def _defined(**options):
    def another(needed): ...

    another.__qualname__ = "another"  # as if it stood in this module
    return task(**options)(another)


class TransactionTests(QueueTestCase):
    databases = ("default", "other")

    def places(self):
        """An order that goes through, and one that does not."""
        with transaction.atomic():
            kept = tasks.add.enqueue(1)
        try:
            with transaction.atomic():
                tasks.add.enqueue(2)
                raise LookupError
        except LookupError:
            return kept

    @skipUnless(POSTGRES, "needs a transaction to join")
    def test_a_task_is_part_of_the_transaction(self):
        with transaction.atomic():
            result = tasks.add.enqueue(1)
            result.refresh()  # this transaction sees it
            self.assertIsNotNone(result.enqueued_at)
            self.assertEqual(list_tasks(), [])  # nobody else does
        self.assertEqual(len(list_tasks()), 1)
        self.places()
        self.assertEqual([row.kwargs["args"] for row in self.queue.tasks()], [[1], [1]])

    @configured(commit="on_commit")
    def test_after_the_commit(self):
        with transaction.atomic():
            result = tasks.add.enqueue(1)
            self.assertIsNone(result.enqueued_at)
            self.assertEqual(list_tasks(), [])
        result.refresh()
        self.assertIsNotNone(result.enqueued_at)
        self.places()
        self.assertEqual(len(list_tasks()), 2)

    @configured(commit="immediately")
    def test_at_once(self):
        self.places()
        self.assertEqual(len(list_tasks()), 2)

    def test_by_default_nothing_is_left_of_what_is_rolled_back(self):
        self.places()
        self.assertEqual(len(list_tasks()), 1)

    @skipUnless(POSTGRES, "needs a transaction to join")
    @configured(database="other")
    def test_the_transactions_of_another_alias(self):
        try:
            with transaction.atomic(), transaction.atomic(using="other"):
                tasks.note.enqueue("gone")
                raise LookupError
        except LookupError:
            with transaction.atomic(using="other"):
                kept = tasks.note.enqueue("kept")
        self.assertEqual([str(row.id) for row in list_tasks()], [kept.id])

    @skipUnless(POSTGRES, "needs a transaction to join")
    def test_a_unique_task_in_a_transaction(self):
        with transaction.atomic():
            first, again = tasks.once.enqueue(1), tasks.once.enqueue(1)
            self.assertEqual(first.id, again.id)


class DrainTests(TestCase):
    """Inside the transaction that Django rolls back."""

    def setUp(self):
        self.queue = self.enterContext(task_queue())
        tasks.SEEN.clear()
        self.parcel = tasks.Parcel.objects.create(name="a book")

    def test_a_task_sees_what_the_test_did_and_the_test_what_the_task_did(self):
        for each in (tasks.ship, tasks.ship_async):
            tasks.Parcel.objects.update(shipped=False)
            result = each.enqueue(self.parcel.pk)
            self.queue.drain()
            result.refresh()
            self.assertEqual((result.status, result.return_value), (TaskResultStatus.SUCCESSFUL, "a book"))
            self.parcel.refresh_from_db()
            self.assertTrue(self.parcel.shipped)

    def test_what_tasks_enqueue_is_run_too(self):
        result = tasks.ship_all.enqueue()
        self.queue.drain()
        result.refresh()
        (shipped,) = result.return_value
        self.assertEqual(tasks.ship.get_result(shipped).return_value, "a book")

    def test_a_failure_is_undone_and_the_test_goes_on(self):
        result = tasks.ship_and_fail.enqueue(self.parcel.pk)
        self.queue.drain()
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        self.parcel.refresh_from_db()
        self.assertFalse(self.parcel.shipped)
        self.assertEqual([row.name for row in self.queue.tasks()], ["jobs.tasks.ship_and_fail"])

    def test_what_is_rolled_back_never_runs(self):
        try:
            with transaction.atomic():
                tasks.note.enqueue("rolled back")
                raise LookupError
        except LookupError:
            tasks.note.enqueue("kept")
        self.queue.drain()
        self.assertEqual(tasks.SEEN, ["kept"])

    def test_time_is_moved_and_not_waited_for(self):
        later = timezone.now() + timedelta(hours=1)
        tasks.note.using(run_after=later).enqueue("later")
        self.queue.drain()
        self.assertEqual(tasks.SEEN, [])
        self.queue.advance(3601)
        self.queue.drain()
        self.assertEqual(tasks.SEEN, ["later"])

    def test_nothing_is_left_for_the_next_test(self):
        self.assertEqual(self.queue.tasks(), [])
        self.assertTrue(connection.in_atomic_block)
        tasks.note.enqueue("x")
        tasks.note.using(run_after=timezone.now() + timedelta(hours=1)).enqueue("later")
        self.queue.drain()

    test_nothing_is_left_for_the_next_test_either = test_nothing_is_left_for_the_next_test
