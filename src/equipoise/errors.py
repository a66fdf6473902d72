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
    """The table, or a column's role in it, is not what an audit can use.

    >>> import equipoise as eq
    >>> trail = eq.from_arrays(y_pred=[0, 1], sensitive_features=["f", "m"])
    >>> try:
    ...     eq.describe(trail, eq.gap("accuracy", across="group"))
    ... except eq.TrailError as error:
    ...     print(error)
    This needs a label column; this trail has: 'prediction'. Pass label=… to equipoise.read.
    """


class ClaimError(EquipoiseError):
    """What is asked (metric, target, groups) does not make sense, or not on this table.

    >>> import equipoise as eq
    >>> try:
    ...     eq.ratio("accuracy", across="sex", target=0)
    ... except eq.ClaimError as error:
    ...     print(error)
    A ratio needs a target that is not zero.
    """


class OptionError(EquipoiseError):
    """An option was misspelt, or given a value it does not take.

    >>> import equipoise as eq
    >>> try:
    ...     eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="sex"), level=95)
    ... except eq.OptionError as error:
    ...     print(error)
    level must lie strictly between 0 and 1; got 95.
    """


class PlanError(EquipoiseError):
    r"""An audit plan is not written as a plan must be; the message names the line.

    >>> import equipoise as eq
    >>> from equipoise.plan import Plan
    >>> try:
    ...     Plan.parse("equipoise: 1\nseed: 7\nseed: 8")
    ... except eq.PlanError as error:
    ...     print(error)
    plan, line 3: 'seed' is given a second time.
    """
