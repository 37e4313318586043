#!/bin/sh
# Notify hook: one mail for each message. In shards.toml:
#
#   [hooks]
#   notify = "examples/hooks/mail.sh you@example.org"
#
# Without an address: to BABYSIT_MAIL_TO of the crontab, else to the user whose cron ticks.
set -eu
to=${1:-${BABYSIT_MAIL_TO:-$(id -un)}}
cat >/dev/null # the same as JSON; a mail needs none of it

printf '%s\n\n(message %s)\n' "$BABYSIT_NOTIFY_TEXT" "$BABYSIT_NOTIFY_ID" |
  mail -s "$BABYSIT_NOTIFY_TITLE" "$to"
