"""The worker by `manage.py tasklib worker`: order, queues, contexts, failures, signals, and the other commands."""

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from unittest import skipUnless

from django.core.management import CommandError
from django.db import connections
from django.utils import timezone

from jobs import tasks
from jobs.cases import POSTGRES, QueueTestCase, manage
from tasklib import schedules
from tasklib.contrib.django import TasklibBackend
from tasklib.contrib.django.compat import TaskResultStatus, task_finished, task_started
from tasklib.core.registry import default_registry


class WorkerTests(QueueTestCase):
    def finished(self, result):
        result.refresh()
        self.assertTrue(result.is_finished, result)
        return result

    def failed(self, result, path):
        self.finished(result)
        self.assertEqual((result.status, result.attempts), (TaskResultStatus.FAILED, 1))
        with self.assertRaisesMessage(ValueError, "Task failed"):
            result.return_value  # noqa: B018
        (error,) = result.errors
        self.assertEqual(error.exception_class_path, path)
        return error

    def test_it_runs_what_is_enqueued(self):
        results = [tasks.add.enqueue(1), tasks.add_async.enqueue(2), tasks.anything.enqueue(x=1)]
        self.work()
        self.assertEqual([self.finished(each).return_value for each in results], [3, 4, [[], {"x": 1}]])
        for each in results:
            self.assertTrue(each.enqueued_at <= each.started_at == each.last_attempted_at <= each.finished_at)
            self.assertEqual((each.attempts, each.errors), (1, []))
        self.work()  # nothing is left to do, and that is no failure

    def test_by_priority_and_then_by_age(self):
        for word, priority in (("low", -10), ("first", 0), ("high", 100), ("second", 0), ("higher", 50)):
            tasks.note.using(priority=priority).enqueue(word)
        self.work()
        self.assertEqual(tasks.SEEN, ["high", "higher", "first", "second", "low"])

    def test_run_after_says_from_when_and_not_in_which_order(self):
        now = timezone.now()
        for hours in (3, -2, 2, -10):
            tasks.note.using(run_after=now + timedelta(hours=hours)).enqueue(hours)
        self.work()
        self.assertEqual(tasks.SEEN, [-2, -10])
        self.queue.advance(4 * 3600)
        self.queue.drain()
        self.assertEqual(tasks.SEEN, [-2, -10, 3, 2])

    def test_not_before_its_time(self):
        hour = timezone.now().replace(microsecond=0) + timedelta(hours=1)
        high = tasks.note.using(run_after=hour, priority=100).enqueue("later")
        self.assertEqual(tasks.note.get_result(high.id).task.run_after, hour)
        tasks.note.using(run_after=timezone.now() - timedelta(hours=1)).enqueue("long ago")
        self.work()
        self.assertEqual(tasks.SEEN, ["long ago"])
        self.queue.advance(3601)
        self.queue.drain()
        self.assertEqual(tasks.SEEN, ["long ago", "later"])

    def test_queues_are_chosen_and_left_out(self):
        tasks.note.enqueue("default")
        tasks.note.using(queue_name="urgent").enqueue("urgent")
        tasks.urgent.enqueue()
        self.work("--exclude-queues", "default")
        self.assertEqual(sorted(map(str, tasks.SEEN)), ["('urgent',)", "urgent"])
        tasks.SEEN.clear()
        tasks.urgent.using(queue_name="default").enqueue()
        self.work("--queues", "default")
        self.assertEqual(tasks.SEEN, ["default", ("urgent",)])
        (sent,) = self.queue.tasks("jobs.tasks.note@urgent")
        self.assertEqual(tasks.note.get_result(str(sent.id)).task.queue_name, "urgent")
        tasks.SEEN.clear()
        for queue in ("default", "urgent"):
            tasks.note.using(queue_name=queue).enqueue(queue)
        self.work("--queues", "default,urgent", "--exclude-queues", "urgent")
        self.assertEqual(tasks.SEEN, ["default"])
        for option in ("--queues", "--exclude-queues"):
            with self.assertRaises(SystemExit):
                self.work(option, "unknown")
        self.work()
        self.assertEqual(tasks.SEEN, ["default", "urgent"])

    @skipUnless(POSTGRES, "SQLite has no locks of rows")
    def test_rows_that_somebody_has_locked_are_left_alone(self):
        locked, free = tasks.add.enqueue(1), tasks.add.enqueue(2)
        somebody = connections.create_connection("default")
        self.addCleanup(somebody.close)
        with somebody.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", [locked.id])
            self.work()
            cursor.execute("ROLLBACK")
        locked.refresh()
        self.assertEqual((locked.status, self.finished(free).return_value), (TaskResultStatus.READY, 4))

    def test_what_the_command_refuses(self):
        for wrong in (["--poll-interval", "-1"], ["--poll-interval", "inf"], ["--poll-interval", "0"], ["--bogus"]):
            with self.assertRaises(SystemExit) as refused:
                manage("worker", "--burst", *wrong)
            self.assertEqual(refused.exception.code, 2, wrong)

    def test_tasks_that_take_a_context(self):
        for each in (tasks.with_context, tasks.with_context_async):
            result = each.enqueue()
            self.work()
            value = self.finished(result).return_value
            self.assertEqual((value["id"], value["attempt"]), (result.id, 1))

    def test_an_exception_is_kept_with_its_class_and_traceback(self):
        result, odd = tasks.fails.enqueue("no luck"), tasks.fails_oddly.enqueue()
        nested = tasks.fails_with_an_exception_inside.enqueue()
        self.work()
        error = self.failed(result, "builtins.ValueError")
        self.assertIs(error.exception_class, ValueError)
        self.assertTrue(error.traceback.endswith("ValueError: no luck"))
        self.assertIn("in fails", error.traceback)
        error = self.failed(odd, "jobs.tasks.Odd")
        self.assertIs(error.exception_class, tasks.Odd)
        self.assertIn("KeyError: 'the cause'", error.traceback)
        error = self.failed(nested, "builtins.ValueError")
        self.assertTrue(error.traceback.endswith("ValueError: the inner one"))

    def test_return_values(self):
        fine, wrong = tasks.returns_json.enqueue(), tasks.returns_what_is_not_json.enqueue()
        self.work()
        expected = {"numbers": [1, 2.5], "none": None, "text": "bytes", "deep": [{"a": [True]}]}
        self.assertEqual(self.finished(fine).return_value, expected)
        self.assertIn("Unsupported type", self.failed(wrong, "builtins.TypeError").traceback)

    def test_a_task_that_ends_its_program_ends_itself_alone(self):
        ended, interrupted, after = tasks.exits.enqueue(), tasks.interrupts.enqueue(), tasks.add.enqueue(1)
        self.work()
        self.failed(ended, "builtins.SystemExit")
        self.failed(interrupted, "builtins.KeyboardInterrupt")
        self.assertEqual(self.finished(after).return_value, 3)

    def test_retries_show_as_ready_with_their_errors(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        result = tasks.fragile.enqueue(folder)
        self.work()
        result.refresh()
        self.assertEqual((result.status, result.attempts, len(result.errors)), (TaskResultStatus.READY, 1, 1))
        self.assertIs(result.errors[0].exception_class, ConnectionError)
        Path(folder, "mended").touch()
        self.queue.advance(6)
        self.queue.drain()
        self.finished(result)
        self.assertEqual((result.return_value, result.attempts, len(result.errors)), ("mended", 2, 1))
        self.assertLess(result.started_at, result.last_attempted_at)

    def test_only_what_the_lists_name_is_tried_again(self):
        results = [tasks.picky.enqueue(kind) for kind in ("connection", "missing", "value")]
        self.work()
        for result in results:
            result.refresh()
        failed = TaskResultStatus.FAILED
        self.assertEqual([result.status for result in results], [TaskResultStatus.READY, failed, failed])

    def test_a_cancelled_task_has_failed(self):
        result = tasks.add.enqueue(1)
        manage("cancel", result.id)
        self.finished(result)
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        self.assertEqual(result.errors[0].exception_class.__name__, "TaskCancelled")

    def test_the_signals_of_a_run(self):
        heard = []

        def hear(signal, word):
            def receiver(sender, task_result, **more):
                heard.append((word, sender, task_result.id, str(task_result.status)))

            signal.connect(receiver, weak=False)
            self.addCleanup(signal.disconnect, receiver)

        hear(task_started, "started")
        hear(task_finished, "finished")
        results = [tasks.add.enqueue(1), tasks.add_async.enqueue(1), tasks.fails.enqueue()]
        self.work()
        for each, end in zip(results, ("SUCCESSFUL", "SUCCESSFUL", "FAILED"), strict=True):
            words = [("started", TasklibBackend, each.id, "RUNNING"), ("finished", TasklibBackend, each.id, end)]
            self.assertEqual([word for word in heard if word[2] == each.id], words)

    def test_the_log_of_a_failure_has_its_exception(self):
        tasks.fails.enqueue("for the log")
        with self.assertLogs(tasks.LOGGER, "ERROR") as logs:
            self.work()
        self.assertIn("for the log", logs.records[-1].exc_info[1].args[0])

    def test_a_row_that_no_code_is_for_is_left_alone_and_named(self):
        from tasklib.api.sync import run_sync
        from tasklib.engine.default import default_engine
        from tasklib.engine.submission import Call

        added = run_sync(default_engine().submit(Call("subprocess.check_output", {"args": [["id"]], "kwargs": {}})))
        self.work()
        (row,) = self.queue.tasks()
        self.assertEqual((row.id, row.state), (added.id, "pending"))
        self.assertIn("no live worker handles it", manage("stats"))
        with self.assertRaises(tasks.compat.TaskResultDoesNotExist):
            tasks.add.get_result(str(added.id))

    def test_a_task_of_tasklib_itself(self):
        handle = tasks.plain.submit(41)
        tasks.Parcel.objects.create(name="one") if POSTGRES else None
        self.work()
        self.assertEqual(handle.result(timeout=5), 42 if POSTGRES else 41)

    def test_schedules_are_declared_by_workers(self):
        self.work()
        (found,) = schedules.all()
        self.assertEqual(found.name, "jobs.tasks.hourly")
        self.assertIn("jobs.tasks.hourly", manage("schedule", "list"))

    def test_commands_are_for_this_projects_queue(self):
        failed = tasks.fails.enqueue("iban=DE02 is wrong")
        tasks.anything.enqueue(iban="DE021203")
        self.work("--exclude", "*.anything")
        listed = json.loads(manage("list", "--json"))
        self.assertEqual({each["name"] for each in listed["tasks"]}, {"jobs.tasks.fails", "jobs.tasks.anything"})
        self.assertNotIn("DE021203", json.dumps(listed))
        manage("retry", failed.id)
        failed.refresh()
        self.assertEqual(failed.status, TaskResultStatus.READY)
        self.assertIn("jobs.tasks.add", default_registry.names())

    def test_prune(self):
        done, failed, waiting = tasks.add.enqueue(1), tasks.fails.enqueue(), tasks.add.enqueue(2)
        manage("cancel", waiting.id)
        self.work()
        pending = tasks.add.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(3)
        self.assertIn("1", manage("cleanup", "--older-than", "0s", "--state", "completed", "--dry-run"))
        manage("cleanup", "--older-than", "1d", "--yes")
        self.assertEqual(len(self.queue.tasks()), 4)
        manage("cleanup", "--older-than", "0s", "--state", "completed", "--yes")
        self.assertEqual({str(row.id) for row in self.queue.tasks()}, {failed.id, waiting.id, pending.id})
        manage("cleanup", "--older-than", "0s", "--yes")
        self.assertIn(pending.id, {str(row.id) for row in self.queue.tasks()})
        with self.assertRaises(SystemExit):
            manage("cleanup", "--older-than", "-1d", "--yes")
        for gone in (done, waiting):
            with self.assertRaises(tasks.compat.TaskResultDoesNotExist):
                gone.refresh()

    def test_a_backend_that_is_not_there_or_not_tasklibs(self):
        with self.assertRaisesMessage(Exception, "unknown"):
            manage("--backend", "unknown", "list")
        with self.assertRaisesMessage(CommandError, "not a backend of tasklib"):
            manage("--backend", "dummy", "list")
        with self.assertRaisesMessage(CommandError, "TASKS"):
            manage("list", "--database-url=memory://")
        with self.assertRaisesMessage(CommandError, "TASKS"):
            manage("list", "-dmemory://")
