"""Rounds of turns: each contender once in every round, so that a machine that slows down slows down for all."""

from benchmarks.book import Book
from benchmarks.stage import NoServer, Stage
from benchmarks.turn import Entry, TurnFailed, take


def turn_of(entry: Entry, stage: Stage, book: Book, number: int, missing: dict[str, str]) -> None:
    """One turn, with its figures or the reason why there are none."""
    reason = next((missing[each] for each in entry.packages if each in missing), None)
    if reason is not None:
        book.fail(entry.name, f"not run: {reason}")
        return
    try:
        with stage.store(entry.engine) as url:
            figures, book.settings[entry.name] = take(entry, url, stage.folder, lambda: stage.settle_down(entry.engine))
    except NoServer as error:
        book.fail(entry.name, f"not run: {error}")
        return
    except TurnFailed as error:
        book.fail(entry.name, f"round {number}: {error}")
        return
    for measure, value in figures.items():
        book.note(entry.name, measure, number, value)
