"""A task that exists exactly if the order exists: both are written in one transaction of the application's own.

Needs PostgreSQL:  TASKLIB_DATABASE_URL=postgresql://localhost/shop python examples/transaction.py
"""

import psycopg
from tasks import send_email

import tasklib

config = tasklib.Config()
tasklib.init(config)


def place_order(connection: psycopg.Connection, customer: str, *, paid: bool) -> None:
    """Commits at the end, or rolls back if anything goes wrong: the order and the e-mail, or neither."""
    with connection.transaction():
        connection.execute("INSERT INTO orders (customer) VALUES (%s)", [customer])
        send_email.options(connection=connection).submit(customer, subject="Thank you for your order")
        if not paid:
            raise ValueError("the payment was refused")


def main() -> None:
    tasklib.list_tasks(limit=1)  # an empty database gets tasklib's tables at first use
    with psycopg.connect(config.database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, customer text NOT NULL)")
        place_order(connection, "alice@example.com", paid=True)
        try:
            place_order(connection, "bob@example.com", paid=False)
        except ValueError as error:
            print(f"bob's order was rolled back: {error}")
        orders = [row[0] for row in connection.execute("SELECT customer FROM orders")]
    print("orders:", orders)
    print("e-mails:", [task.kwargs["to"] for task in tasklib.list_tasks(name="send_email")])


if __name__ == "__main__":
    main()
