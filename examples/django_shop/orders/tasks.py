from tasklib import every
from tasklib.contrib.django import task

from orders.models import Order


@task(queue_name="mail", max_retries=5, timeout_seconds=30)
def confirm(order_id):
    order = Order.objects.get(pk=order_id)
    order.confirmed = True
    order.save()
    return f"mailed {order.email}"


@task(takes_context=True, max_retries=1)
def charge(context, order_id):
    raise ConnectionError(f"attempt {context.attempt}: the bank does not answer")


@task(schedule=every(minutes=15))
def forget_unpaid():
    return Order.objects.filter(paid=False, confirmed=False).delete()[0]
