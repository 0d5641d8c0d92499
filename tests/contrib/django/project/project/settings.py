"""DATABASE_URL says which database: a PostgreSQL, or a file for SQLite."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django import VERSION

where = urlsplit(os.environ["DATABASE_URL"])
if where.scheme == "sqlite":
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(where.path)}
else:
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": where.hostname,
        "PORT": where.port,
        "USER": unquote(where.username or ""),
        "PASSWORD": unquote(where.password or ""),
        "NAME": unquote(where.path.removeprefix("/")),
        "CONN_MAX_AGE": None,  # connections are kept, so that one that broke would be met again
    }
DATABASES = {"default": database, "other": {**database, "TEST": {"MIRROR": "default"}}}
MIGRATION_MODULES = dict.fromkeys(("admin", "auth", "contenttypes", "sessions"))  # their tables at once: it takes long
SECRET_KEY = "for tests"
ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *([] if VERSION >= (6,) else ["django_tasks"]),
    "tasklib.contrib.django",
    "jobs",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "project.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TASKS = {
    "default": {
        "BACKEND": "tasklib.contrib.django.TasklibBackend",
        "QUEUES": ["default", "urgent"],
        "OPTIONS": {
            "base_retry_delay_seconds": 5,
            "redact_keys": ["iban"],
            **({"lock_timeout_seconds": float(os.environ["LOCK_TIMEOUT"])} if "LOCK_TIMEOUT" in os.environ else {}),
        },
    },
    "dummy": {
        "BACKEND": "django.tasks.backends.dummy.DummyBackend"
        if VERSION >= (6,)
        else "django_tasks.backends.dummy.DummyBackend"
    },
}
if "SECOND_SCHEMA" in os.environ:
    TASKS["second"] = {**TASKS["default"], "OPTIONS": {"schema": os.environ["SECOND_SCHEMA"]}}
