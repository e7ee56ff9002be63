# Whether balancers hear "down" now; where the program cannot tell, because its configuration is wrong, its files do.
fenced() {
  if said=$(refloat fence status 2>/dev/null); then
    printf '%s\n' "$said" | grep -q '^balancers hear  *down:'
  else
    grep -qs '"answer":"down"' /run/refloat/fence /run/refloat/fence.hand
  fi
}

# A balancer keeps what it heard last: so nobody goes before it has heard "up".
if [ "$1" -eq 0 ] && fenced; then
  echo "refloat: releasing this node; balancers hear it within 15 seconds"
  refloat fence release --for 1h >/dev/null 2>&1 || rm -f /run/refloat/fence.hand
  if [ -d /run/systemd/system ]; then
    /usr/bin/systemctl stop refloat-health.service >/dev/null 2>&1 || :
  fi
  rm -f /run/refloat/fence
  sleep 15
fi
if [ "$1" -eq 0 ]; then
  # A running job ends at its next safe point before this returns.
  if [ -x /usr/lib/systemd/systemd-update-helper ]; then
    /usr/lib/systemd/systemd-update-helper remove-system-units refloat.service refloat-health.service refloat-certs.path refloat-answer.socket refloat-answer-http.socket refloat-answer.service || :
  elif [ -x /usr/bin/systemctl ]; then
    /usr/bin/systemctl --no-reload disable --now refloat.service refloat-health.service refloat-certs.path refloat-answer.socket refloat-answer-http.socket refloat-answer.service || :
  fi
fi
