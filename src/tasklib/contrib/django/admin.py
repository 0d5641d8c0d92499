"""Tasks in Django's admin: read page by page through the queue itself, retried and cancelled as operators do."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

from tasklib.api.sync import run_sync
from tasklib.contrib.django import models
from tasklib.contrib.django.startup import current_backend
from tasklib.core.error_group import last_line
from tasklib.core.errors import InvalidInput, TaskLibError
from tasklib.core.ids import as_task_id
from tasklib.core.redact import mask_text
from tasklib.core.task import Task, TaskState, is_terminal
from tasklib.engine.audit import Auditor
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter

PAGE = 50
_DONE = {"retry": "retried", "cancel": "cancelled, or asked to stop"}


@admin.register(models.Task)
class TaskAdmin(admin.ModelAdmin):
    """Nothing here asks Django's database: the queue may be elsewhere, and its lists are paged by key."""

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            self._act(request, request.POST.getlist("task"))
            return HttpResponseRedirect(request.get_full_path())
        asked = {name: request.GET.get(name, "").strip() for name in ("state", "name", "q")}
        engine = current_backend().engine
        tasks: list[dict[str, Any]] = []
        following: UUID | None = None
        try:
            page = run_sync(engine.page(_filter(asked, engine), limit=PAGE, cursor=_cursor(request.GET.get("after"))))
            tasks, following = [_row(task, engine) for task in page.tasks], page.next_cursor
        except TaskLibError as error:
            messages.error(request, str(error))
        context = {
            "title": "Tasks",
            "rows": tasks,
            "asked": asked,
            "states": list(TaskState),
            "next": following and urlencode({**{k: v for k, v in asked.items() if v}, "after": following}),
            "is_first": "after" not in request.GET,
            **self._shared(request),
        }
        return TemplateResponse(request, "admin/tasklib/task/list.html", context)

    def change_view(self, request: Any, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        if not self.has_view_permission(request):
            raise PermissionDenied
        engine = current_backend().engine
        try:
            task = run_sync(engine.get_or_raise(as_task_id(object_id)))
        except (InvalidInput, LookupError):
            raise Http404(f"no task {object_id:.80}") from None
        if request.method == "POST":
            self._act(request, [str(task.id)])
            return HttpResponseRedirect(request.get_full_path())
        context = {
            "title": task.name,
            "task": _row(task, engine),
            "fields": _fields(task, engine),
            "attempts": [_attempt(entry) for entry in task.history],
            "may_retry": task.state == TaskState.FAILED,
            "may_cancel": not is_terminal(task),
            **self._shared(request),
        }
        return TemplateResponse(request, "admin/tasklib/task/detail.html", context)

    def history_view(self, request: Any, object_id: str, extra_context: Any = None) -> Any:
        return HttpResponseRedirect(reverse("admin:tasklib_task_change", args=[object_id]))

    def _shared(self, request: Any) -> dict[str, Any]:
        try:
            dashboard = reverse("tasklib:dashboard", args=[""])
        except NoReverseMatch:
            dashboard = None
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "may_change": self.has_change_permission(request),
            "dashboard": dashboard,
        }

    def _act(self, request: Any, ids: list[str]) -> None:
        """Through the engine, in this person's name: guarded by what each task is by then, and told in its timeline."""
        action = request.POST.get("action", "")
        if not self.has_change_permission(request):
            raise PermissionDenied
        if action not in _DONE:
            messages.warning(request, "Choose what to do.")
            return
        engine = current_backend().engine
        auditor = Auditor(f"{request.user.get_username()} (admin)", engine.config.redact)
        done = 0
        for task_id in ids:
            verb = engine.retry if action == "retry" else engine.cancel
            try:
                task = run_sync(verb(as_task_id(task_id), audit=auditor.of_tasks(action)))
            except TaskLibError as error:
                messages.error(request, str(error))
            else:
                done += 1
                self.log_change(request, models.Task(id=task.id, name=task.name), _DONE[action])
        if done:
            messages.success(request, f"{done} task{'' if done == 1 else 's'} {_DONE[action]}.")


def _filter(asked: dict[str, str], engine: Engine) -> Filter:
    return Filter(
        states=[asked["state"]] if asked["state"] in set(TaskState) else None,
        names=[asked["name"]] if asked["name"] else None,
        words=asked["q"].split() or None,
        secret_keys=engine.config.secret_keys if asked["q"] else None,
    )


def _cursor(text: str | None) -> UUID | None:
    return as_task_id(text) if text else None


def _row(task: Task, engine: Engine) -> dict[str, Any]:
    """What a list shows, without secrets."""
    return {
        "id": task.id,
        "name": task.name,
        "state": "waiting for a retry" if task.waiting else task.state,
        "arguments": _json(engine.config.redact(task.kwargs))[:200],
        "error": mask_text(last_line(task.error))[:200] if task.error else "",
        "created_at": task.created_at,
        "due_at": task.due_at,
        "attempts": f"{task.attempts} of {task.max_attempts or 'any number'}",
    }


def _fields(task: Task, engine: Engine) -> list[tuple[str, Any]]:
    redact = engine.config.redact
    return [
        ("Id", task.id),
        ("Arguments", _json(redact(task.kwargs))),
        ("Result", "" if task.result is None else _json(redact(task.result).get("value"))),
        ("Error", mask_text(task.error) if task.error else ""),
        ("Tags", _json(redact(task.tags))),
        ("Priority", task.priority),
        ("Created", task.created_at),
        ("Due", task.due_at),
        ("Started", task.started_at),
        ("Finished", task.completed_at),
        ("Worker", task.worker_id or task.last_worker_id or ""),
    ]


def _attempt(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "error": mask_text(str(entry.get("error", "")))}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
