"""What people see: the admin, the dashboard behind the login of staff, the checks, and the migrations."""

import io
import json
from datetime import UTC, datetime
from unittest import skipUnless

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import NotSupportedError, connection
from django.test import override_settings

from jobs import tasks
from jobs.cases import POSTGRES, QueueTestCase
from tasklib import SchemaMismatch
from tasklib.api.sync import run_sync
from tasklib.contrib.django.compat import task_backends
from tasklib.contrib.django.models import Task
from tasklib.contrib.django.operations import TakeStep
from tasklib.engine.engine import Engine
from tasklib.stores.values import AuditFilter

LIST = "/admin/tasklib/task/"
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
PAGE = {"Accept": "text/html"}


class SiteTestCase(QueueTestCase):
    available_apps = None

    def person(self, name, *permissions, **about):
        user = User.objects.create_user(name, password="x", **about)
        user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
        return user

    def enter(self, *permissions, **about):
        self.client.force_login(self.person("ada", *permissions, **{"is_staff": True, **about}))

    def audited(self):
        async def look():
            return await (await self.queue.engine.store()).list_audit(AuditFilter())

        return [(entry.actor, entry.action, str(entry.task_id)) for entry in run_sync(look())]

    def failed(self, text="no luck"):
        result = tasks.fails.enqueue(text)
        self.queue.drain()
        return result


class AdminTests(SiteTestCase):
    def test_only_those_who_may_see_it(self):
        self.assertEqual(self.client.get(LIST).status_code, 302)
        self.enter()
        self.assertEqual(self.client.get(LIST).status_code, 403)
        self.assertEqual(self.client.get(f"{LIST}{self.failed().id}/change/").status_code, 403)

    def test_a_list_by_key_with_search_and_without_secrets(self):
        self.enter("view_task")
        for number in range(120):
            tasks.anything.enqueue(number, password="hunter2")
        failed = self.failed("<b>unwise</b>")
        page = self.client.get(LIST).content.decode()
        self.assertIn("&lt;b&gt;unwise&lt;/b&gt;", page)
        self.assertNotIn("hunter2", page)
        self.assertNotIn('name="action"', page)
        numbers, address = [], f"{LIST}?name=jobs.tasks.anything"
        while address:
            answer = self.client.get(address)
            numbers += [json.loads(row["arguments"])["args"][0] for row in answer.context["rows"]]
            following = answer.context["next"]
            address = following and f"{LIST}?{following}"
        self.assertEqual(numbers, list(reversed(range(120))))
        rows = self.client.get(f"{LIST}?state=failed").context["rows"]
        self.assertEqual([str(row["id"]) for row in rows], [failed.id])
        self.assertEqual(len(self.client.get(f"{LIST}?q=unwise").context["rows"]), 1)
        self.assertEqual(self.client.get(f"{LIST}?q=hunter2").context["rows"], [])
        self.assertContains(self.client.get(f"{LIST}?after=nonsense"), "must be a UUID")

    def test_retry_and_cancel_are_guarded_and_told(self):
        self.enter("view_task", "change_task")
        failed, waiting = self.failed(), tasks.add.enqueue(1)
        retried = self.client.post(LIST, {"action": "retry", "task": [failed.id, waiting.id]}, follow=True)
        self.assertContains(retried, "1 task retried")
        self.assertContains(retried, "only a failed task can be retried")
        self.client.post(f"{LIST}{waiting.id}/change/", {"action": "cancel"})
        states = {str(row.id): row.state for row in self.queue.tasks()}
        self.assertEqual(states, {failed.id: "pending", waiting.id: "cancelled"})
        told = [("ada (admin)", "cancel", waiting.id), ("ada (admin)", "retry", failed.id)]
        self.assertEqual(self.audited(), told)
        self.assertEqual({entry.object_id for entry in LogEntry.objects.all()}, {failed.id, waiting.id})

    def test_who_may_only_look_changes_nothing(self):
        self.enter("view_task")
        failed = self.failed()
        for address in (LIST, f"{LIST}{failed.id}/change/"):
            refused = self.client.post(address, {"action": "retry", "task": [failed.id]})
            self.assertEqual(refused.status_code, 403)
        self.assertEqual(self.queue.tasks()[0].state, "failed")
        self.assertEqual(self.audited(), [])

    def test_one_task(self):
        self.enter("view_task", "change_task")
        failed = self.failed("token=abc123 <script>")
        page = self.client.get(f"{LIST}{failed.id}/change/").content.decode()
        for part in ("jobs.tasks.fails", "ValueError", "&lt;script&gt;", ">Retry<", "/ops/queue/tasks/"):
            self.assertIn(part, page)
        due = datetime(2100, 1, 2, tzinfo=UTC)
        later = self.client.get(f"{LIST}{tasks.add.using(run_after=due).enqueue(1).id}/change/")
        self.assertEqual(dict(later.context["fields"])["Due"], due)
        self.assertContains(later, "Jan. 1, 2100, 6 p.m.")  # in the project's zone
        self.assertNotIn("abc123", page)
        self.assertNotIn(">Cancel<", page)
        for wrong in ("nonsense", "00000000-0000-0000-0000-000000000000"):
            self.assertEqual(self.client.get(f"{LIST}{wrong}/change/").status_code, 404)
        self.assertEqual(self.client.get(f"{LIST}add/").status_code, 403)

    @skipUnless(POSTGRES, "elsewhere Django's database has no such table")
    def test_the_model_is_for_reading(self):
        failed = self.failed()
        found = Task.objects.get(state="failed", error__contains="no luck")
        self.assertEqual((str(found.pk), found.kwargs["args"]), (failed.id, ["no luck"]))
        for change in (found.save, found.delete):
            with self.assertRaises(NotSupportedError):
                change()


class DashboardTests(SiteTestCase):
    def get(self, path, **headers):
        return self.client.get(f"/ops/queue/{path}", headers=headers)

    def post(self, path, data=None, **headers):
        headers = {**OWN_PAGE, **headers}
        return self.client.post(f"/ops/queue/{path}", data or {}, content_type="application/json", headers=headers)

    def test_people_are_sent_to_the_login_and_programs_are_told(self):
        page = self.get("tasks?status=failed", **PAGE)
        self.assertRedirects(
            page, "/admin/login/?next=/ops/queue/tasks%3Fstatus%3Dfailed", fetch_redirect_response=False
        )
        for path in ("api/tasks", "api/stats", "openapi.json", "assets/login.js"):
            self.assertEqual(self.get(path).status_code, 401, path)
        self.assertEqual(self.post("api/tasks", {"type": "x", "payload": {}}).status_code, 401)
        self.enter("view_task", "change_task", is_staff=False)
        self.assertEqual(self.get("api/tasks").status_code, 401)
        self.assertEqual(self.get("", **PAGE).status_code, 302)

    def test_staff_without_the_permission_are_refused(self):
        self.enter()
        self.assertEqual(self.get("api/tasks").status_code, 403)
        self.assertEqual(self.get("", **PAGE).status_code, 403)
        self.client.force_login(self.person("bob", "view_task", is_staff=True, is_active=False))
        self.assertEqual(self.get("api/tasks").status_code, 401)

    def test_the_page_knows_where_it_is(self):
        self.enter("view_task")
        page = self.get("tasks", **PAGE)
        self.assertEqual(page.status_code, 200)
        self.assertIn('<base href="/ops/queue/">', page.content.decode())
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertEqual(self.get("api/events").status_code, 429)
        self.assertEqual(self.get("nowhere", **PAGE).status_code, 404)

    def test_what_one_may_do_is_what_django_says(self):
        failed = self.failed()
        self.enter("view_task")
        self.assertEqual(self.get("api/session").json()["role"], "read-only")
        self.assertEqual(self.get("api/tasks").json()["tasks"][0]["id"], failed.id)
        self.assertEqual(self.post(f"api/tasks/{failed.id}/retry").status_code, 403)
        self.client.force_login(self.person("bob", "view_task", "change_task", is_staff=True))
        self.assertEqual(self.get("api/session").json()["label"], "bob (Django)")
        self.assertEqual(self.post(f"api/tasks/{failed.id}/retry").status_code, 200)
        self.assertEqual(self.post("api/tasks", {"type": "jobs.tasks.add", "payload": {}}).status_code, 403)
        self.client.force_login(self.person("eve", is_staff=True, is_superuser=True))
        added = self.post("api/tasks", {"type": "jobs.tasks.add", "payload": {"args": [1]}})
        self.assertEqual(added.status_code, 201, added.content)
        self.queue.drain()
        self.assertEqual(tasks.add.get_result(added.json()["id"]).return_value, 3)
        self.assertEqual(self.audited()[-1], ("bob (Django)", "retry", failed.id))

    def test_another_site_can_change_nothing(self):
        self.enter("view_task", "change_task")
        failed = self.failed()
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            self.assertEqual(self.post(f"api/tasks/{failed.id}/retry", **headers).status_code, 403)
        alone = self.client.post(f"/ops/queue/api/tasks/{failed.id}/retry", content_type="application/json")
        self.assertEqual(alone.status_code, 403)
        self.assertEqual(self.queue.tasks()[0].state, "failed")
        self.assertEqual(self.client.get("/ops/queue/api/tasks", headers={"Host": "evil.example"}).status_code, 400)

    def test_signing_out_is_djangos(self):
        self.enter("view_task")
        self.assertEqual(self.post("api/logout", **{"Sec-Fetch-Site": "cross-site"}).status_code, 403)
        self.assertEqual(self.get("api/session").status_code, 200)
        self.assertEqual(self.post("api/logout").status_code, 204)
        self.assertEqual(self.get("api/session").status_code, 401)
        self.assertRedirects(self.get("login", **PAGE), "/admin/login/?next=/ops/queue/", fetch_redirect_response=False)


class CheckTests(SiteTestCase):
    databases = ("default", "other")  # a check of Django's own asks each whether it has JSON

    def found(self, *aliases, **options):
        backend = "tasklib.contrib.django.TasklibBackend"
        configured = {alias: {"BACKEND": backend, "OPTIONS": options} for alias in aliases or ("default",)}
        with override_settings(TASKS=configured):
            return [(message.id, message.msg) for message in run_checks() if message.id.startswith("tasklib.")]

    def test_a_project_that_is_well(self):
        self.assertEqual(run_checks(), [])

    @override_settings(INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"], ROOT_URLCONF="jobs")
    def test_the_app_is_missing(self):
        (message,) = task_backends["default"].check()
        self.assertEqual(message.id, "tasklib.E001")
        self.assertIn("tasklib.contrib.django", message.hint)

    def test_options_that_are_wrong(self):
        for options, text in (
            ({"commit": "sometimes"}, "commit: one of"),
            ({"max_retrys": 3}, "max_retrys: unknown setting"),
            ({"max_retries": -7}, "max_retries must be"),
            ({"database": "elsewhere"}, "no 'elsewhere' in DATABASES"),
            ({"database_url": "mysql://x"}, "known are sqlite"),
            ({"database_url": "memory://x", "commit": "transaction"}, "say on_commit"),
            ({"middleware": ["nowhere.Such"]}, "nowhere"),
        ):
            ((number, said),) = self.found(**options)
            self.assertEqual(number, "tasklib.E002")
            self.assertIn(text, said)

    def test_two_aliases_of_one_queue(self):
        self.assertEqual([number for number, _ in self.found("default", "second")], ["tasklib.E004"])

    def test_without_queues(self):
        backend = {"BACKEND": "tasklib.contrib.django.TasklibBackend", "QUEUES": []}
        with override_settings(TASKS={"default": backend}):
            self.assertEqual([message.id for message in run_checks()], ["tasklib.W001"])


class MigrationTests(SiteTestCase):
    def run_command(self, *arguments):
        out = io.StringIO()
        call_command(*arguments, stdout=out, verbosity=1)
        return out.getvalue()

    def tables(self):
        with connection.cursor() as cursor:
            return set(connection.introspection.table_names(cursor))

    def test_the_models_are_what_the_migrations_say(self):
        self.run_command("makemigrations", "--check", "--dry-run", "tasklib")

    @skipUnless(POSTGRES, "elsewhere the queue is not in Django's database")
    def test_there_and_back_and_what_was_made_before(self):
        self.addCleanup(self.run_command, "migrate", "tasklib")
        self.assertIn("CREATE TABLE", self.run_command("sqlmigrate", "tasklib", "0001"))
        self.run_command("migrate", "tasklib", "zero")
        self.assertEqual({name for name in self.tables() if name == "tasks" or name.startswith("task_")}, set())
        with self.assertRaises(SchemaMismatch) as refused:
            tasks.add.enqueue(1)
        self.assertIn("manage.py migrate", *refused.exception.__notes__)
        run_sync(self.queue.engine.close())
        run_sync(self.queue.engine.store())  # a worker is first, and makes them
        made = self.tables()
        self.run_command("migrate", "tasklib")
        self.assertEqual(self.tables(), made)
        self.assertEqual(tasks.add.enqueue(1).status, "READY")
        self.run_command("migrate", "tasklib", "0001")
        self.run_command("migrate", "tasklib")

    @skipUnless(POSTGRES, "elsewhere there are no schemas")
    def test_in_a_schema_of_its_own(self):
        backend = {"BACKEND": "tasklib.contrib.django.TasklibBackend", "OPTIONS": {"schema": "Own_Schema"}}
        with override_settings(TASKS={"default": backend}):
            with connection.schema_editor() as editor:
                for version in (1, 2):
                    TakeStep(version).database_forwards("tasklib", editor, None, None)
            engine = Engine(task_backends["default"].config())
            self.assertEqual(run_sync(_planned(engine)), [])
            with connection.schema_editor() as editor:
                TakeStep(1).database_backwards("tasklib", editor, None, None)
                editor.execute('DROP SCHEMA "Own_Schema"')  # as it is empty


async def _planned(engine):
    store = engine.new_store()
    try:
        return await store.migrate(plan=True)
    finally:
        await store.close()
