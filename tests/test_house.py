"""The house gets no dearer to change: `make house` prints the figures, and tells which files they are."""

from tests import house


def test_a_column_is_named_in_few_files():
    assert len(house.files_with(house.COLUMN)) <= 10


def test_an_option_is_taken_in_few_files():
    assert len(house.files_that_take(house.OPTION)) <= 4
    named = {path.relative_to("src/tasklib").as_posix() for path in house.files_with(house.OPTION)}
    assert house.NOT_TAKING.keys() <= named, "files that no longer name it are no exceptions"


def test_the_sql_stores_do_not_grow():
    assert house.sql_stores().lines <= 11_600
