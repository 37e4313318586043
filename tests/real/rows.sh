#!/usr/bin/env bash
# The program that the tests put into Slurm: rows, money, resumable, and a trace that proves things.
#
#   rows.sh FOLDER SECONDS_PER_ROW [ROWS_PER_RUN]
#
# Files in FOLDER steer it: `wait` (no next row while it is there), `fail` (its text is printed, then
# exit 3), `mute` (no ledger line any more). `trace` says what was done by whom:
#   begin ROW JOB | end ROW JOB | redone ROW JOB (a finished row was done again) | twin JOB (two at once)
set -euo pipefail
folder=$1 seconds=$2 most=${3:-1000000}
mkdir -p "$folder"
trace() { printf '%s\n' "$*" >>"$folder/trace"; }

exec 9>"$folder/lock"
flock -n 9 || trace "twin $SLURM_JOB_ID"

ledger=$folder/cost.jsonl
spent() { awk -F'"cost_usd":' '{ sum += $2 + 0 } END { print sum + 0 }' "$ledger" 2>/dev/null || echo 0; }
over_cap() {
  [[ -n ${BABYSIT_COST_CAP:-} ]] &&
    awk -v spent="$(spent)" -v cap="$BABYSIT_COST_CAP" 'BEGIN { exit !(spent + 1e-9 >= cap) }'
}

made=0
for ((row = 0; row < BABYSIT_ROWS; row++)); do
  file=$folder/row_$row.json
  while [[ -e $folder/wait ]]; do sleep 0.1 9>&-; done
  if [[ -e $folder/fail ]]; then
    cat "$folder/fail"
    exit 3
  fi
  [[ ! -e $file ]] || continue
  if over_cap; then
    echo "stopped at the cap"
    exit 0
  fi
  if ((made++ >= most)); then
    echo "enough for one run"
    exit 0
  fi
  trace "begin $row $SLURM_JOB_ID"
  sleep "$seconds" 9>&-
  [[ -e $folder/mute ]] || printf '{"row": %d, "cost_usd": %s}\n' "$row" "${ROW_COST:-0.1}" >>"$ledger"
  printf '{"row": %d, "job": %d, "attempt": %d}\n' "$row" "$SLURM_JOB_ID" "$BABYSIT_ATTEMPT" >"$file.$SLURM_JOB_ID"
  # A link is made whole or not at all, and never over one that is there.
  if ln "$file.$SLURM_JOB_ID" "$file" 2>/dev/null; then
    trace "end $row $SLURM_JOB_ID"
  else
    trace "redone $row $SLURM_JOB_ID"
  fi
  rm -f "$file.$SLURM_JOB_ID"
done
