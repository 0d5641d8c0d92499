"""For a process that is nothing but a worker, as `tasklib worker` starts them."""

from __future__ import annotations

import gc


def tune_gc() -> None:
    """To be called when everything is imported. What is there now stays until the end: the garbage collector need not
    walk over it each time some ten thousand claims have come and gone. Nor need it come every 700 objects, which is
    less than one batch of claims: nearly all of them go without its help."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)
