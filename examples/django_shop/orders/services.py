from django.db import transaction

from orders.models import Order
from orders.tasks import charge, confirm


def place(email, stolen=False):
    with transaction.atomic():
        order = Order.objects.create(email=email)
        result = confirm.enqueue(order.pk)
        charge.using(priority=50).enqueue(order.pk)
        if stolen:
            raise ValueError("this card is stolen")  # no order, and no task
    return result
