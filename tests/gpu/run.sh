#!/bin/sh
# Runs every step of the bundle; see README.md. PYTHON may name another Python.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec "${PYTHON:-python3}" -B "$here/run.py" "$@"
