from django.db import migrations

from tasklib.contrib.django.operations import TakeStep


class Migration(migrations.Migration):
    dependencies = [("tasklib", "0001_tasks")]
    operations = [TakeStep(2)]
