"""The shop of docs/django.md, as files: tasks in Django on PostgreSQL.

pip install 'tasklib-queue[django,postgres,server]' 'psycopg[binary]'
export PGHOST=localhost PGUSER=... PGDATABASE=...
python manage.py migrate
python manage.py test
python manage.py tasklib worker
"""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
