from django.db import migrations, models

from tasklib.contrib.django.operations import TakeStep


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("state", models.CharField(max_length=20)),
                ("priority", models.IntegerField()),
                ("kwargs", models.JSONField(verbose_name="arguments")),
                ("result", models.JSONField(null=True)),
                ("error", models.TextField(null=True)),
                ("tags", models.JSONField()),
                ("retry_count", models.IntegerField()),
                ("max_retries", models.IntegerField()),
                ("created_at", models.DateTimeField()),
                ("scheduled_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
                ("next_retry_at", models.DateTimeField(null=True)),
                ("worker_id", models.CharField(max_length=255, null=True)),
            ],
            options={
                "db_table": "tasks",
                "ordering": ("-id",),
                "managed": False,
                "default_permissions": ("view", "change"),
            },
        ),
        TakeStep(1),
    ]
