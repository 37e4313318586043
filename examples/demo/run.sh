#!/usr/bin/env bash
# The demo's stand-in for run.py of the top-level shards.toml. It computes nothing: a row is a sleep.
#
#   run.sh --task find|restore --shard NAME
#
# What it shares with a real program: finished rows are skipped, a row is there whole or not at all,
# each row's cost goes into a ledger, and it stops by itself at its cost cap. For the demo's proof it
# also notes each row that it begins and finishes in trace.log.
set -euo pipefail

task='' shard=''
while (($#)); do
  case $1 in
    --task) task=${2:?} ;;
    --shard) shard=${2:?} ;;
    *) echo "usage: run.sh --task find|restore --shard NAME" >&2 && exit 2 ;;
  esac
  shift 2
done

# Seconds and dollars per row: restore is the slower one, and in both families s0 is the dearer shard.
case $task/$shard in
  find/s0) seconds=1 cents=40 ;;
  find/*) seconds=1 cents=25 ;;
  restore/s0) seconds=1.5 cents=45 ;;
  restore/*) seconds=1.5 cents=27 ;;
  *) echo "run.sh: no such shard: $task/$shard" >&2 && exit 2 ;;
esac

folder=runs/$task/$shard
ledger=$folder.jsonl
mkdir -p "$folder"
touch "$ledger"
spent=$(($(wc -l <"$ledger") * cents))
cap=$(awk -v cap="${BABYSIT_COST_CAP:-1e9}" 'BEGIN { printf "%d", cap * 100 }')
note() { printf '%s %s/%s %d attempt %s\n' "$1" "$task" "$shard" "$2" "${BABYSIT_ATTEMPT:-0}" >>trace.log; }

# SIGTERM (a preemption, a cancel) ends it between two rows, never in the middle of writing one.
stop=''
trap 'stop=yes' TERM

for ((row = 0; row < ${BABYSIT_ROWS:?}; row++)); do
  printf -v file '%s/row_%03d.json' "$folder" "$row"
  if [[ -e $file ]]; then continue; fi
  if ((spent >= cap)); then
    echo "stopped before row $row: $spent of $cap cents are spent"
    exit 0
  fi
  note begin "$row"
  sleep "$seconds" &
  wait $! || true
  if [[ -n $stop ]]; then
    echo "told to stop in row $row"
    exit 143
  fi
  # The money is spent before the row is finished, so the ledger comes first.
  printf '{"row": %d, "cost_usd": %d.%02d}\n' "$row" $((cents / 100)) $((cents % 100)) >>"$ledger"
  spent=$((spent + cents))
  printf '{"row": %d, "attempt": %s}\n' "$row" "${BABYSIT_ATTEMPT:-0}" >"$file.tmp"
  mv "$file.tmp" "$file"
  note finish "$row"
done
echo "all $BABYSIT_ROWS rows are there"
