"""YAML read strictly: plain values only, and for every value the line it stands on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from equipoise.errors import PlanError

#: Characters; a plan is written by hand.
LIMIT = 1_000_000
DEPTH = 60

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Plain data with the line of each of its parts."""

    data: Any
    """Dictionaries, lists and scalars."""
    lines: Mapping[Path, int]
    """Where each part stands, by the keys that lead to it."""
    called: str
    """The file, in words."""

    def at(self, path: Path) -> str:
        """The file and line of a part, or of the nearest part around it."""
        if not self.lines:
            # quoted in evidence, or put together by a command: nothing that a line could point to
            return self.called
        while path not in self.lines and path:
            path = path[:-1]
        return f"{self.called}, line {self.lines.get(path, 1)}"


def read_yaml(text: str, called: str) -> Marked:
    """Parse a YAML text of mappings, lists, text, numbers and true/false.

    Anchors, tags, merge keys and repeated keys are refused: a plan says everything once, where it
    applies. Words such as "yes" and dates stay the text they are.

    >>> read_yaml("a: [1, yes]", "plan").data
    {'a': [1, 'yes']}
    """
    if len(text) > LIMIT:
        raise PlanError(f"{called} has {len(text):,} characters; a plan has at most {LIMIT:,}.")
    try:
        _refuse_features(text, called)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise PlanError(_syntax(error, called)) from error
    except yaml.YAMLError as error:
        raise PlanError(f"{called} is not YAML: {error}.") from error
    lines: dict[Path, int] = {}
    data = None if node is None else _value(node, (), lines, called)
    return Marked(data=data, lines=lines, called=called)


class _Loader(yaml.SafeLoader):
    """Only true and false are truth values, and dates are text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":bool", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_TRUTH = {"true": True, "True": True, "false": False, "False": False}


def _refuse_features(text: str, called: str) -> None:
    """Refuse what goes beyond plain values before anything is built from it."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = f"{called}, line {event.start_mark.line + 1}"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise PlanError(f"{line}: anchors and aliases (& and *) are not read; write it out.")
        if getattr(event, "tag", None):
            raise PlanError(f"{line}: the tag {event.tag!r} is not read; write a plain value.")
        if depth > DEPTH:
            raise PlanError(f"{line}: nested more than {DEPTH} deep, which no plan needs.")
        if documents > 1:
            raise PlanError(f"{line}: a second document begins; a plan is one.")


def _value(node: yaml.Node, path: Path, lines: dict[Path, int], called: str) -> Any:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, called)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), lines, called) for i, item in enumerate(node.value)]
    return _scalar(cast(yaml.ScalarNode, node), f"{called}, line {lines[path]}")


def _mapping(
    node: yaml.MappingNode, path: Path, lines: dict[Path, int], called: str
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key_node, item in node.value:
        line = f"{called}, line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise PlanError(f"{line}: a key must be a word; got a list or a mapping.")
        key = str(key_node.value)
        if key == "<<":
            raise PlanError(f"{line}: merge keys (<<) are not read; write the fields out.")
        if key in made:
            raise PlanError(f"{line}: {key!r} is given a second time.")
        made[key] = _value(item, (*path, key), lines, called)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return made


def _scalar(node: yaml.ScalarNode, line: str) -> Any:
    # a quoted word is text whatever it looks like
    if node.style is None and node.value in _TRUTH:
        return _TRUTH[node.value]
    try:
        value = _Loader("").construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise PlanError(f"{line}: {node.value!r:.60} cannot be read as a value.") from error
    if isinstance(value, int) and abs(value) >= 2**63:
        raise PlanError(f"{line}: {node.value!r:.60} is too large a number.")
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{line}: {node.value!r} is no number; write {{number: inf}} if meant.")
    return value


def _syntax(error: yaml.MarkedYAMLError, called: str) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"{called}, line {mark.line + 1}" if mark else called
    return f"{where}: this is not YAML: {error.problem or error.context}."
