"""All parts of a run by name, for `--only`: those that every round has, and those that are done once."""

from benchmarks.cancels import cancels
from benchmarks.cases import Case, latency, submits, together, turns
from benchmarks.claimers import claimers
from benchmarks.costs import costs
from benchmarks.crowded import crowded
from benchmarks.flows import flows
from benchmarks.limits import limits
from benchmarks.pages_case import pages
from benchmarks.rest import rest
from benchmarks.schedules import schedules
from benchmarks.startup import startup
from benchmarks.worker_cost import idle, memory

EVERY_ROUND: dict[str, Case] = {
    "turns": turns,
    "submits": submits,
    "together": together,
    "latency": latency,
    "cancels": cancels,
    "rest": rest,
    "limits": limits,
    "crowded": crowded,
    "startup": startup,
}
ONCE: dict[str, Case] = {
    "costs": costs,
    "claimers": claimers,
    "idle": idle,
    "memory": memory,
    "schedules": schedules,
    "flows": flows,
    "pages": pages,
}
