#!/usr/bin/env bash
# What babysit asks of a program, in one page: it can be started again at any time.
#
#   rows.sh FOLDER [SECONDS_PER_ROW]
#
# Makes FOLDER/row_0000.json and so on, $BABYSIT_ROWS of them, and one line per row in
# FOLDER/cost.jsonl. Rows that are there are skipped; a row is there whole or not at all; it stops by
# itself when the ledger reaches $BABYSIT_COST_CAP.
set -euo pipefail

folder=${1:?usage: rows.sh FOLDER [SECONDS_PER_ROW]}
seconds=${2:-6}
rows=${BABYSIT_ROWS:-20}
cap=${BABYSIT_COST_CAP:-}
price=0.02 # dollars a row
ledger=$folder/cost.jsonl
mkdir -p "$folder"
touch "$ledger"

# A job that was killed in the middle of a line left half of one: start on a fresh line.
if [ -s "$ledger" ] && [ -n "$(tail -c 1 "$ledger")" ]; then
    echo >>"$ledger"
fi

over_cap() {
    [ -n "$cap" ] || return 1
    awk -v cap="$cap" -F'"cost_usd":' 'NF > 1 { spent += $2 + 0 } END { exit !(spent + 1e-9 >= cap) }' "$ledger"
}

for ((i = 0; i < rows; i++)); do
    row=$folder/$(printf 'row_%04d.json' "$i")
    if [ -e "$row" ]; then
        continue
    fi
    if over_cap; then
        echo "stopped before row $i: the ledger has reached the cap of \$$cap"
        exit 0
    fi
    sleep "$seconds"
    # The money is spent before the row is finished, so the ledger comes first.
    printf '{"row": %d, "cost_usd": %s}\n' "$i" "$price" >>"$ledger"
    printf '{"row": %d, "host": "%s", "attempt": "%s"}\n' "$i" "$(uname -n)" "${BABYSIT_ATTEMPT:-}" >"$row.tmp"
    mv "$row.tmp" "$row"
    echo "row $i of $rows"
done
