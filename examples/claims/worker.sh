#!/usr/bin/env bash
# A worker in plain curl: TASKLIB_TOKEN=... ./worker.sh TYPE COMMAND [ARGUMENT...]
# Claims tasks of one type. For each, COMMAND reads the claim, as JSON, and prints the result, as JSON.
url=${TASKLIB_URL:-http://127.0.0.1:8700} type=$1 worker="$(hostname)-$$-$RANDOM" lease=60
errors=$(mktemp) && trap 'rm -f "$errors"' EXIT
trap 'stopping=yes' TERM INT
shift

post() { # PATH FIELDS: the answer, or its problem and failure
  printf '{"workerId": "%s"%s}' "$worker" "$2" |
    curl -sS --fail-with-body --max-time 60 "$url/api/claims$1" -H "Authorization: Bearer $TASKLIB_TOKEN" \
      -H "Content-Type: application/json" --data-binary @-
}
keep() { # ID: extends the claim for as long as the work takes
  trap 'kill $! 2>/dev/null; exit' TERM
  while sleep $((lease / 3)) & wait $!; do
    post "/$1/extend" ", \"leaseSeconds\": $lease" >/dev/null || return
  done
}
while [ -z "$stopping" ]; do
  claim=$(post "" ", \"types\": [\"$type\"], \"leaseSeconds\": $lease, \"waitSeconds\": 5") || { sleep 1; continue; }
  id=$(sed -n 's/^{"claims":\[{"id":"\([0-9a-f-]*\)".*/\1/p' <<<"$claim")
  [ -n "$id" ] || continue
  keep "$id" & keeper=$!
  if ! { result=$("$@" <<<"$claim" 2>"$errors") && post "/$id/complete" ", \"result\": $result"; }; then
    error=$(tail -c 2000 "$errors" | LC_ALL=C tr -c '[:print:]' ' ' | sed 's/[\\"]/\\&/g')
    post "/$id/fail" ", \"error\": \"${error:-no result, or one that is not JSON}\""
  fi
  kill "$keeper" 2>/dev/null
  wait "$keeper" 2>/dev/null
  echo
done
