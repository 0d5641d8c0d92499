"""`path("queue/", include("tasklib.contrib.django.urls"))` in the project's own."""

from django.urls import re_path

from tasklib.contrib.django.dashboard import dashboard

app_name = "tasklib"
urlpatterns = [re_path(r"^(?P<path>.*)$", dashboard, name="dashboard")]
