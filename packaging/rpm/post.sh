# What the macros of systemd-rpm-macros stand for, written out: they would be expanded where it is installed.
if [ -x /usr/bin/systemd-sysusers ]; then
  # rpm before 4.19 does not do it by itself.
  /usr/bin/systemd-sysusers refloat.conf || :
fi
if [ -x /usr/bin/journalctl ]; then
  /usr/bin/journalctl --update-catalog || :
fi
if [ "$1" -eq 1 ]; then
  if [ -x /usr/lib/systemd/systemd-update-helper ]; then
    /usr/lib/systemd/systemd-update-helper install-system-units refloat.service refloat-health.service refloat-certs.path refloat-answer.socket refloat-answer-http.socket || :
  elif [ -x /usr/bin/systemctl ]; then
    /usr/bin/systemctl --no-reload preset refloat.service refloat-health.service refloat-certs.path refloat-answer.socket refloat-answer-http.socket || :
  fi
fi
