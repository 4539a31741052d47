#!/usr/bin/env bash
# The plugin in the real host: run.sh [411|410] [options of run_memory.py]. Needs Python 3.11 to 3.13 and pip's index; finds both.
set -euo pipefail
cd "$(dirname "$0")"
lane=411
case ${1:-} in 411 | 410) lane=$1; shift ;; esac

python=
for each in ${PY:-} python3.12 python3.13 python3.11 python3 python; do
  if "$each" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
    python=$each
    break
  fi
done
if [ -z "$python" ]; then
  echo "The host needs Python 3.11, 3.12 or 3.13 with venv, and none was found; name one in PY."
  exit 1
fi

status=0
"$python" lanes.py "$lane" || status=$?
if [ $status = 75 ]; then exit 0; fi # it has said "skipped: ..."
if [ $status != 0 ]; then exit $status; fi
exec ".venv-$lane/bin/python" run_memory.py --lane "$lane" "$@"
