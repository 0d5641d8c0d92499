from django.test import TestCase

from orders.models import Order
from orders.services import place
from tasklib.testing.django import task_queue


class OrderTest(TestCase):
    def setUp(self):
        self.queue = self.enterContext(task_queue())

    def test_an_order_is_confirmed(self):
        result = place("ada@example.com")
        self.queue.drain()
        result.refresh()
        self.assertEqual(result.return_value, "mailed ada@example.com")
        self.assertTrue(Order.objects.get().confirmed)

    def test_of_a_stolen_card_nothing_is_left(self):
        with self.assertRaises(ValueError):
            place("eve@example.com", stolen=True)
        self.assertEqual(self.queue.tasks(), [])

    def test_a_bank_that_does_not_answer(self):
        place("ada@example.com")
        self.queue.drain()
        self.queue.advance(60)  # the retry is due; nobody waits
        self.queue.drain()
        (task,) = self.queue.tasks("orders.tasks.charge")
        self.assertEqual((task.state, task.attempts), ("failed", 2))
