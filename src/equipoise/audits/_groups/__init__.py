"""Behind the audits of named groups: `certify`, `flag`, `joint_test`, `discover`.

`problem` brings cells, groups and target into the form the mathematics takes; the other modules put
one method each on it.
"""
