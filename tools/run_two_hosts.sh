#!/bin/sh
# run_two_hosts.sh [--loopback] RANKS PROGRAM [ARGS]: runs PROGRAM as RANKS MPI ranks on two hosts,
# which this machine plays: half of them on each, an odd one on the first.
#
# Where namespaces are permitted and there is `ip`, each host is a network and a name of its own, with
# a cable between them. Elsewhere, or with --loopback, there are two nodes of mpirun on the loopback
# interface; then the ranks must be told that they are on different hosts: {ranks_per_host} in
# ARGS becomes their number on the first (with namespaces 0, hosts being what they are). For example
#   tools/run_two_hosts.sh 4 ./sherd train examples/gpt_kjv.toml --engine mpi --strategy fsdp \
#     --set dist.ranks_per_host={ranks_per_host}
way=namespaces
if [ "$1" = --loopback ]; then
  way=loopback
  shift
fi
if [ $# -lt 2 ]; then
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
ranks=$1
shift
half=$(((ranks + 1) / 2))

folder=$(mktemp -d /tmp/two_hosts.XXXXXX)
first= second=
trap 'kill $first $second 2>/dev/null; rm -r "$folder"' EXIT
trap 'exit 143' INT TERM

# Whether process $1 has a network of its own by now.
apart() {
  tries=0
  while [ "$(readlink "/proc/$1/ns/net")" = "$(readlink "/proc/$2/ns/net")" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] && kill -0 "$1" 2>/dev/null || return 1
    sleep 0.05
  done
}

# Two sleeping processes whose namespaces are the hosts.
make_namespaces() {
  command -v ip >/dev/null && command -v nsenter >/dev/null || return 1
  user=
  if unshare -Unu --map-root-user true 2>/dev/null; then
    user=--user
    unshare -Unu --map-root-user sleep 100000 &
  elif unshare -nu true 2>/dev/null; then
    unshare -nu sleep 100000 &
  else
    return 1
  fi
  first=$!
  apart $first $$ || return 1
  on_first="nsenter --preserve-credentials -t $first $user -n -u --"
  $on_first unshare -nu sleep 100000 &
  second=$!
  apart $second $first && apart $second $$ || return 1
  on_second="nsenter --preserve-credentials -t $second $user -n -u --"
  $on_first hostname first-host && $on_second hostname second-host &&
    $on_first ip link add cable type veth peer name cable netns $second &&
    $on_first ip addr add 10.77.0.1/24 dev cable && $on_second ip addr add 10.77.0.2/24 dev cable &&
    for on in "$on_first" "$on_second"; do
      $on ip link set lo up && $on ip link set cable up || return 1
    done
}

if [ $way = namespaces ] && make_namespaces 2>"$folder/why"; then
  hosts="10.77.0.1 10.77.0.2" network=10.77.0.0/24 split=0 btl=self,vader,tcp
  # mpirun is on the first host, and owns both.
  agent="nsenter -t $second -n -u --"
else
  [ $way = loopback ] || echo "run_two_hosts.sh: no namespaces here, so by loopback" >&2
  hosts="127.0.0.1 127.0.0.2" network=127.0.0.0/8 split=$half on_first= agent=
  # Shared memory is named after the host and a number there, which both nodes have.
  btl=self,tcp
fi
for host in $hosts; do echo "$host slots=$half"; done >"$folder/hosts"
# What mpirun starts its daemon on the second host with, in place of ssh.
printf '#!/bin/sh\nshift\nexec %s sh -c "$*"\n' "$agent" >"$folder/agent"
chmod +x "$folder/agent"

program=$1
shift
# {ranks_per_host} in each argument, which stays one.
for argument; do
  shift
  case $argument in
    *'{ranks_per_host}'*) argument=${argument%%'{ranks_per_host}'*}$split${argument#*'{ranks_per_host}'} ;;
  esac
  set -- "$@" "$argument"
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=/tmp
# Open MPI never frees what it sets up at the start.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
$on_first mpirun -np "$ranks" --hostfile "$folder/hosts" --map-by slot --oversubscribe --bind-to none \
  -x ASAN_OPTIONS --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include "$network" \
  --mca pml ob1 --mca btl "$btl" --mca btl_tcp_if_include "$network" "$program" "$@"
