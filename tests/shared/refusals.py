"""What an error is about, for `pytest.raises(..., check=...)`."""


def bad_rows(*expected):
    """Whether the bad rows of a `DataError` are these: (row, column, value) of each."""
    return lambda error: [(row.row, row.column, row.value) for row in error.rows] == [*expected]


def bad_row(row, column, value):
    """Whether the first bad row of a `DataError` is this one."""
    return lambda error: [(each.row, each.column, each.value) for each in error.rows[:1]] == [(row, column, value)]


def about(setting, *value):
    """Whether an error is about a setting, and about its value where one is given."""
    return lambda error: (error.setting, *([error.value] * len(value))) == (setting, *value)
