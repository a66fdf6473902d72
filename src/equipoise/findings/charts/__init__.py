"""Pictures of findings, drawn with Altair when asked for."""
