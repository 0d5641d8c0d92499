"""The house gets no dearer to change: `make house` prints the figures, and tells which files they are."""

from tests import house


def test_a_column_is_named_in_few_files():
    assert len(house.files_with(house.COLUMN)) <= 13


def test_an_option_is_named_in_few_files():
    assert len(house.files_with(house.OPTION)) <= 28


def test_the_sql_stores_do_not_grow():
    assert house.sql_stores().lines <= 8_643
