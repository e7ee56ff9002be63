if [ "$1" -ge 1 ]; then
  # Marked units are restarted once at the end of the transaction.
  if [ -x /usr/lib/systemd/systemd-update-helper ]; then
    /usr/lib/systemd/systemd-update-helper mark-restart-system-units refloat.service refloat-health.service refloat-certs.path refloat-answer.service || :
  elif [ -x /usr/bin/systemctl ]; then
    /usr/bin/systemctl daemon-reload || :
    /usr/bin/systemctl try-restart refloat.service refloat-health.service refloat-certs.path refloat-answer.service || :
  fi
elif [ -d /var/lib/refloat ]; then
  # No word about this node stays behind.
  rm -f /run/refloat/fence /run/refloat/fence.hand
  echo "refloat: state and backups stay in /var/lib/refloat, configuration in /etc/refloat"
fi
