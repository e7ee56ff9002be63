#!/usr/bin/env bash
# The demo: a real three-member etcd, two snapshots, a flipped byte, an export, a restore by etcd's own tools, and a
# prune of a store that is full of other people's things.
#
# Called by ./dev demo, which builds what it needs and sets REFLOAT_BED (etcd's programs), REFLOAT_BIN (refloat) and
# BED_FILL (the filler). Everything happens in a temporary directory and on loopback; members are ended by process id
# and also die with this script.
set -Eeuo pipefail

: "${REFLOAT_BED:?run ./dev demo}" "${REFLOAT_BIN:?run ./dev demo}" "${BED_FILL:?run ./dev demo}"
programs=$REFLOAT_BED/etcd-3.6.16
work=$(mktemp -d "${TMPDIR:-/tmp}/refloat-demo-XXXXXX")
pids=()

end_members() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  done
  pids=()
}
clean_up() {
  end_members
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
trap 'fail "stopped in line $LINENO: $BASH_COMMAND"' ERR

say() { printf '\n== %s\n' "$*"; }
fail() {
  tail -n 5 "$work"/*.log >&2 2>/dev/null || true
  printf '\ndemo: %s\n' "$*" >&2
  exit 1
}

# Settings of the caller's own etcd must not reach the demo's.
for name in "${!ETCD@}"; do unset "$name"; done

etcdctl() { timeout 60 "$programs/etcdctl" "$@"; }
etcdutl() { timeout 120 "$programs/etcdutl" "$@"; }

# Shows a command as a reader would type it, then runs it.
refloat() {
  printf '\n$ refloat%s\n' "$(printf ' %q' "$@")"
  timeout 300 "$REFLOAT_BIN" --config "$work/refloat.toml" "$@"
}
refloat_json() { timeout 300 "$REFLOAT_BIN" --config "$work/refloat.toml" -o json "$@"; }

# A port below the range of outgoing connections that nobody listens on.
declare -A given=()
free_port() { # sets $port
  while :; do
    port=$((12000 + RANDOM % 20000))
    [[ -z ${given[$port]:-} ]] || continue
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  given[$port]=1
}

start_member() { # NAME CLIENT-PORT PEER-PORT INITIAL-CLUSTER DATA-DIRECTORY
  setpriv --pdeathsig KILL -- "$programs/etcd" --name "$1" --data-dir "$5" \
    --listen-client-urls "http://127.0.0.1:$2" --advertise-client-urls "http://127.0.0.1:$2" \
    --listen-peer-urls "http://127.0.0.1:$3" --initial-advertise-peer-urls "http://127.0.0.1:$3" \
    --initial-cluster "$4" --initial-cluster-token "${work##*/}" >>"$work/$1.log" 2>&1 &
  pids+=($!)
  # Else bash reports their end as if it were a fault.
  disown
}

# Waits until every member serves, and makes sure that those which do are ours: our processes live, and the members
# that answer have the names and URLs that we gave.
wait_healthy() { # ENDPOINTS NAME...
  local endpoints=$1 pid name names
  shift
  for _ in {1..300}; do
    for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || return 1; done
    if etcdctl --endpoints "$endpoints" --command-timeout 2s endpoint health >/dev/null 2>&1; then
      names=$(etcdctl --endpoints "$endpoints" member list -w json | jq -r '.members[] | .name + .clientURLs[0]')
      for name in "$@"; do grep -q "^${name}http://127.0.0.1:" <<<"$names" || return 1; done
      return 0
    fi
    sleep 0.1
  done
  return 1
}

start_cluster() {
  local i peers client_ports peer_ports
  for _ in 1 2 3; do
    peers='' endpoints='' client_ports=() peer_ports=()
    for i in 1 2 3; do
      free_port && client_ports[i]=$port
      free_port && peer_ports[i]=$port
      peers+=,m$i=http://127.0.0.1:${peer_ports[i]}
      endpoints+=,http://127.0.0.1:${client_ports[i]}
    done
    peers=${peers#,} endpoints=${endpoints#,}
    for i in 1 2 3; do start_member m$i "${client_ports[i]}" "${peer_ports[i]}" "$peers" "$work/m$i"; done
    if wait_healthy "$endpoints" m1 m2 m3; then return; fi
    # Somebody took a port in between: once more from the start, on other ports.
    end_members
    rm -rf "$work"/m[123]
  done
  fail 'three members did not start three times'
}

hash_of() { # ENDPOINT REVISION
  etcdctl --endpoints "$1" endpoint hashkv --rev "$2" -w json | jq -r '.[0].HashKV | "\(.hash)"'
}

say "three members of a real etcd 3.6.16 start in $work"
start_cluster
etcdctl --endpoints "$endpoints" endpoint status -w table
leader=$(etcdctl --endpoints "$endpoints" endpoint status -w json |
  jq -r 'map(select(.Status.leader == .Status.header.member_id))[0].Endpoint')
follower=$(tr , '\n' <<<"$endpoints" | grep -vxF "$leader" | head -n1)

say 'filled with Kubernetes-like objects'
printf 'revision %s\n' "$("$BED_FILL" "$leader" kubernetes 3000 2>/dev/null)"

mkdir "$work/store" "$work/state" "$work/run"
cat >"$work/refloat.toml" <<TOML
node = "demo"

[paths]
state   = "$work/state"
runtime = "$work/run"

[etcd]
member    = "$follower"
endpoints = [$(sed 's/[^,]*/"&"/g; s/,/, /g' <<<"$endpoints")]

[[store]]
name = "local"
url  = "file://$work/store"
min_free = "1GiB"
retention = { keep_last = 2, keep_within = "6h", keep_hourly = 4, keep_daily = 3, min_keep = 2 }
TOML
say 'the configuration'
cat "$work/refloat.toml"

say 'two snapshots, with writes between them'
refloat snapshot take
"$BED_FILL" "$leader" small 500 >/dev/null 2>&1
refloat snapshot take --tag demo
refloat snapshot list
listed=$(refloat_json snapshot list | jq '.snapshots | length')
[[ $listed -eq 2 ]] || fail "$listed snapshots are listed instead of 2"
refloat snapshot show latest
refloat snapshot verify latest

say 'an export is a file for etcd’s own tools'
refloat snapshot export latest --to "$work/export.db"
etcdutl snapshot status "$work/export.db" -w table

say 'one byte of a copy is flipped'
cp "$work/export.db" "$work/flipped.db"
offset=$(($(stat -c %s "$work/flipped.db") / 2))
byte=$(dd if="$work/flipped.db" bs=1 skip="$offset" count=1 status=none | od -An -tu1 | tr -d ' ')
printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$work/flipped.db" bs=1 seek="$offset" conv=notrunc status=none
code=0
refloat snapshot verify "$work/flipped.db" || code=$?
[[ $code -eq 65 ]] || fail "the flipped byte was not caught: exit code $code instead of 65"
printf 'caught: exit code 65\n'

say 'etcdutl restores the export and etcd starts from it'
revision=$(refloat_json snapshot show latest | jq -r '.revision // .snapshot.revision')
free_port && client=$port
free_port && peer=$port
etcdutl snapshot restore "$work/export.db" --data-dir "$work/restored" --name restored \
  --initial-cluster "restored=http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
  >"$work/restore.log" 2>&1 || fail 'etcdutl does not restore the export'
start_member restored "$client" "$peer" "restored=http://127.0.0.1:$peer" "$work/restored"
wait_healthy "http://127.0.0.1:$client" restored || fail 'etcd does not start from the export'

source_hash=$(hash_of "$follower" "$revision")
restored_hash=$(hash_of "http://127.0.0.1:$client" "$revision")
printf 'HashKV at revision %s: source %s, restored %s\n' "$revision" "$source_hash" "$restored_hash"
[[ -n $source_hash && $source_hash == "$restored_hash" ]] || fail 'the HashKV differs'
printf 'equal: the restored etcd has every key and revision of the source\n'

# A copy of a snapshot as one taken so long ago would be: its manifest says so, its data is the same.
aged() { # TIME REVISION
  local at stamp id new dir=$work/store/$lineage/snapshots
  at=$(date -u -d "$1" +%Y-%m-%dT%H:%M:%S.000Z)
  stamp=$(date -u -d "$1" +%Y%m%dT%H%M%S000Z)
  id=$(refloat_json snapshot show latest | jq -r .id)
  new=$(printf '0001-%020d-%s-demo' "$2" "$stamp")
  jq --arg id "$new" --arg at "$at" --argjson revision "$2" \
    '.id = $id | .taken_at = $at | .finished_at = $at | .revision = $revision' "$dir/$id.json" >"$dir/$new.json"
  cp "$dir/$id.db.zst" "$dir/$new.db.zst"
}

say 'a store with two weeks of snapshots, and among them things that are not refloat’s'
lineage=$(refloat_json snapshot show latest | jq -r .lineage)
snapshots=$work/store/$lineage/snapshots
for hours in 1 2 3 7 8 26 30 50 54 80 150 340; do aged "$hours hours ago" $((400 - hours)); done
pinned=$(refloat_json snapshot list | jq -r '.snapshots[-1].id')
refloat snapshot pin "$pinned" --reason 'before the upgrade'
mkdir -p "$work/canary/snapshots"
printf 'precious' >"$work/canary/precious"
old=$(refloat_json snapshot list | jq -r '.snapshots[-2].id')
printf 'x' >"$work/store/-rf"
printf 'x' >"$work/store/"$'new\nline'
ln -s / "$work/store/root"
ln -s "$work/canary" "$work/store/0123456789abcdef"
ln -s "$work/canary/precious" "$snapshots/${old/0001-0/0001-1}.json"
mkdir "$snapshots/${old/0001-0/0001-2}.db.zst"
canary() { (cd "$work" && find canary store/-rf store/new* -type f -exec sha256sum {} + | sort); }
before=$(canary)

say 'what would go, and why each stays or goes'
code=0
refloat prune --dry-run || code=$?
[[ $code -eq 2 ]] || fail "a dry run that shows changes ends with $code instead of 2"
[[ $(refloat_json snapshot list | jq '.snapshots | length') -eq 14 ]] || fail 'the dry run removed something'

say 'the same, from the root directory, without being asked'
(cd / && refloat prune --yes)
refloat snapshot list
[[ $(canary) == "$before" ]] || fail 'something was touched that is not refloat’s'
[[ -L $work/store/root && -d $snapshots/${old/0001-0/0001-2}.db.zst ]] || fail 'something was touched that is not refloat’s'
refloat_json snapshot list | jq -e --arg id "$pinned" '.snapshots | any(.id == $id)' >/dev/null || fail 'a pin did not hold'
printf '\neverything that is not refloat’s is as it was, and what went waits in the trash:\n'
ls "$work/store/$lineage/trash" | grep '\.json$'
