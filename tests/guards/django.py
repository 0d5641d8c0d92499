"""Django: who gets in, what is part of whose transaction, which connections are used, what the admin may do."""

from tests.guards.fencing import one

SITE = "tests/contrib/django/test_project.py::test_on_sqlite[site-here]"
TASKS = "tests/contrib/django/test_project.py::test_on_sqlite[backend-here]"
POSTGRES = "tests/contrib/django/test_project.py::test_on_postgres[backend-here]"
PROCESS = "tests/contrib/django/test_project.py::test_a_worker_outlives_its_database[here]"
DASHBOARD = "contrib/django/dashboard.py"
ADMIN = "contrib/django/admin.py"
BACKEND = "contrib/django/backend.py"

GUARDS = (
    one(
        "the dashboard in Django is for staff with the permission",
        DASHBOARD,
        "if not (user.is_active and user.is_staff and user.has_perm(VIEW)):",
        SITE,
        put="if not user.is_active:",
    ),
    one(
        "who may only look in Django does not operate in the dashboard",
        DASHBOARD,
        "Role.OPERATOR if user.has_perm(CHANGE) else Role.READ_ONLY",
        SITE,
        put="Role.OPERATOR",
    ),
    one(
        "another site cannot use the session of Django in the dashboard",
        "server/auth.py",
        "self._check_site(scope, bearer is not None)",
        SITE,
        put="pass",
    ),
    one(
        "Django's admin asks for the permission to change",
        ADMIN,
        "if not self.has_change_permission(request):",
        SITE,
        put="if False:",
        within="def _act",
    ),
    one(
        "Django's admin shows no secrets in its list",
        ADMIN,
        "_json(engine.config.redact(task.kwargs))[:200]",
        SITE,
        put="_json(task.kwargs)[:200]",
    ),
    one(
        "what Django's admin does is told in the audit trail",
        ADMIN,
        ", audit=auditor.of_tasks(action)",
        SITE,
    ),
    one(
        "a task of Django is part of the transaction",
        BACKEND,
        "if self.queue_options.commit is not Commit.TRANSACTION:",
        POSTGRES,
        put="if True:",
        within="def store",
    ),
    one(
        "a task of Django waits for the commit",
        BACKEND,
        "if self.queue_options.commit is Commit.ON_COMMIT and self._connection.in_atomic_block:",
        TASKS,
        put="if False:",
    ),
    one(
        "arguments that a function of Django does not take are refused",
        "contrib/django/types.py",
        "except TypeError as error:",
        TASKS,
        put="except ZeroDivisionError as error:",
        within="def check_arguments",
    ),
    one(
        "idle connections of Django are looked at before a task uses them",
        "contrib/django/middleware.py",
        "connection.health_check_enabled = True",
        PROCESS,
        put="pass",
    ),
    one(
        "a connection of Django's tests is not closed around a task",
        "contrib/django/middleware.py",
        "if not connection.in_atomic_block:  # a test's",
        POSTGRES,
        put="if True:",
    ),
)
