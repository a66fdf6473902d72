"""For every test run: the verbs are loaded before any of their modules is collected."""

# A verb and its module share a name; collected first, the module would take the verb's place.
import equipoise.audits  # noqa: F401
