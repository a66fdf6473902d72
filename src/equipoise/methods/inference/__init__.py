"""Inference for group audits: a pivot per group, one joint law, one layer of multiplicity."""
