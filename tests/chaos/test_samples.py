"""What a soak calls flat."""

import random

from tests.chaos.samples import GAUGES, Gauge, judge

MEMORY = next(gauge for gauge in GAUGES if gauge.name == "memory")


def test_noise_around_a_level_is_flat_and_so_is_a_warm_up():
    rng = random.Random(1)
    values = [40 + 20 * min(1, n / 50) + rng.uniform(-3, 3) for n in range(400)]
    assert judge(MEMORY, values).flat


def test_a_leak_is_not():
    assert not judge(MEMORY, [60 + n * 0.1 for n in range(400)]).flat


def test_a_single_spike_at_the_end_is_no_leak():
    assert judge(MEMORY, [60.0] * 399 + [600.0]).flat


def test_what_is_left_behind_at_each_fault_is_not_flat():
    descriptors = Gauge("descriptors", "", 0.1, 8)
    assert not judge(descriptors, [30 + n // 10 for n in range(400)]).flat
