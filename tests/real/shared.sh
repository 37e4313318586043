#!/usr/bin/env bash
# A program that shares its shard's rows with its helpers, by `babysit row`.
#
#   shared.sh BABYSIT FOLDER SECONDS_PER_ROW
#
# `trace` says what was done by whom: begin ROW JOB | end ROW JOB | redone ROW JOB
set -euo pipefail
babysit=$1 folder=$2 seconds=$3
mkdir -p "$folder"
trace() { printf '%s\n' "$*" >>"$folder/trace"; }

while row=$("$babysit" row take --unless "$folder/row_{row}.json"); do
  file=$folder/row_$row.json
  trace "begin $row $SLURM_JOB_ID"
  sleep "$seconds"
  printf '{"row": %d, "cost_usd": 0.1}\n' "$row" >>"$folder/cost.jsonl"
  echo '{}' >"$file.$SLURM_JOB_ID"
  # A link is made whole or not at all, and never over one that is there.
  if ln "$file.$SLURM_JOB_ID" "$file" 2>/dev/null; then
    trace "end $row $SLURM_JOB_ID"
  else
    trace "redone $row $SLURM_JOB_ID"
  fi
  rm -f "$file.$SLURM_JOB_ID"
  "$babysit" row done "$row"
done
