"""What goes wrong, said so that the reader can put it right."""


class EquipoiseError(Exception):
    """Base of every error this package raises on purpose.

    Its message says what was expected, what came, what exists, and what to do next.

    >>> import equipoise as eq
    >>> try:
    ...     eq.read("nowhere.csv")
    ... except eq.EquipoiseError as error:
    ...     print(error)
    No file or folder 'nowhere.csv'. Pass the path of a CSV or Parquet file, a folder or a glob.
    """


class TrailError(EquipoiseError):
    """The table, or a column's role in it, is not what an audit can use."""


class ClaimError(EquipoiseError):
    """What is asked (metric, target, groups) does not make sense, or not on this table."""


class OptionError(EquipoiseError):
    """An option was misspelt, or given a value it does not take."""


class PlanError(EquipoiseError):
    """An audit plan is not written as a plan must be; the message names the line."""
