if [ "$1" -eq 0 ]; then
  # A running job ends at its next safe point before this returns.
  if [ -x /usr/lib/systemd/systemd-update-helper ]; then
    /usr/lib/systemd/systemd-update-helper remove-system-units refloat.service refloat-certs.path || :
  elif [ -x /usr/bin/systemctl ]; then
    /usr/bin/systemctl --no-reload disable --now refloat.service refloat-certs.path || :
  fi
fi
