#!/bin/sh
# What the GitHub Action and the GitLab template run: one gate, with everything a build can show.
# Set by them: EQUIPOISE_PLAN, EQUIPOISE_UNDETERMINED (pass, fail or nothing), EQUIPOISE_OUT, EQUIPOISE_DATA.
set -u
plan=${EQUIPOISE_PLAN:-audit.yaml}
out=${EQUIPOISE_OUT:-audit}
mkdir -p "$out" || exit 3
set -- check "$plan" --out "$out" --force --junit "$out/junit.xml" --sarif "$out/results.sarif"
if [ -n "${EQUIPOISE_UNDETERMINED:-}" ]; then set -- "$@" --undetermined "$EQUIPOISE_UNDETERMINED"; fi
if [ -n "${EQUIPOISE_DATA:-}" ]; then set -- "$@" --data "$EQUIPOISE_DATA"; fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then set -- "$@" --summary "$GITHUB_STEP_SUMMARY"; fi
equipoise "$@"
code=$?
if [ -n "${GITHUB_OUTPUT:-}" ]; then echo "code=$code" >> "$GITHUB_OUTPUT"; fi
exit "$code"
