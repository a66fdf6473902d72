"""Among equally bad kinds of people, the one that differs least."""

import dataclasses

import numpy as np

from equipoise.audits._individual.people import People
from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.transport import Plan, Solution


def nearest(people: People, losses: FloatArray, solution: Solution) -> Solution:
    """The same solution of free moves, with nobody changed in more features than needed.

    Where moves are free, all cells of a class with the largest loss are equally good targets. The
    one with the fewest changes says most plainly what makes the difference.
    """
    plan = solution.plan
    moved = np.flatnonzero(plan.source != plan.target)
    target = plan.target.copy()
    alike = _alike(people.classes(), losses)
    for i in moved.tolist():
        target[i] = _closest(people.index, plan.source[i], alike[int(plan.target[i])])
    after = np.bincount(target, plan.mass, minlength=len(people)).astype(np.float64)
    again = Plan(source=plan.source, target=target, mass=plan.mass, gain=plan.gain)
    return dataclasses.replace(solution, plan=again, after=after)


def _closest(index: IntArray, cell: int, among: IntArray) -> int:
    changes = (index[among] != index[cell]).sum(axis=1)
    return int(among[np.argmin(changes)])


def _alike(classes: IntArray, losses: FloatArray) -> dict[int, IntArray]:
    """For each cell, the cells of its class with exactly its loss."""
    order = np.lexsort((np.arange(len(losses)), losses, classes))
    breaks = (np.diff(classes[order]) != 0) | (np.diff(losses[order]) != 0)
    found: dict[int, IntArray] = {}
    for cells in np.split(order, np.flatnonzero(breaks) + 1):
        found.update(dict.fromkeys(cells.tolist(), cells))
    return found
