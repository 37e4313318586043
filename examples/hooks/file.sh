#!/bin/sh
# Notify hook: one line of JSON for each message, at the end of a file; for a monitor, or to look at.
# In shards.toml:
#
#   [hooks]
#   notify = "examples/hooks/file.sh messages.jsonl"
#
# A relative path is below the folder of this script's caller: name it whole under cron.
set -eu
cat >>"${1:-$HOME/babysit-messages.jsonl}"
