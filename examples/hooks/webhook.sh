#!/bin/sh
# Notify hook: posts {"text": "..."} to a web hook, as Slack, Mattermost and others take it.
# In shards.toml:
#
#   [hooks]
#   notify = "examples/hooks/webhook.sh"
#
# The address is a secret: it is read from BABYSIT_WEBHOOK of the crontab, else from the file
# ~/.config/babysit/webhook (chmod 600), and is not in the command line that `ps` shows.
set -eu
url=${BABYSIT_WEBHOOK:-}
[ -n "$url" ] || url=$(cat "$HOME/.config/babysit/webhook")
cat >/dev/null # the whole message; a chat needs only its text

# As a JSON string. babysit leaves no other control character in it than the newline.
text=$(printf '%s\n%s' "$BABYSIT_NOTIFY_TITLE" "$BABYSIT_NOTIFY_TEXT" |
  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{ printf "%s%s", line++ ? "\\n" : "", $0 }')

# --fail: an answer such as 404 is an error, which `babysit status` then shows. No --retry: what was
# perhaps taken already must not come twice.
printf '{"text": "%s"}' "$text" | curl --silent --show-error --fail --max-time 15 \
  --header 'Content-Type: application/json' --data-binary @- --output /dev/null \
  --config /dev/fd/3 3<<END
url = "$url"
END
