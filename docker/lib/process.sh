# shellcheck shell=bash
#
# A node's process. Needs DIR, HEAP, JVM, WAIT and JARS. A node is known by its pid file and by its
# command line, so that a pid file left by a crash never points at a stranger.

# arguments PID: the command line of a process. It is empty for a moment while the process becomes
# another program, and for good when it has ended and nobody has asked for its status yet.
arguments() {
  local tries line=
  if [[ ! -r /proc/$1/cmdline ]]; then
    ps -p "$1" -o args= 2>/dev/null
    return
  fi
  for ((tries = 0; tries < 40; tries++)); do
    line=$(tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline") || break
    [[ -z $line && $(cat "/proc/$1/stat" 2>/dev/null) == *') '[!ZX]* ]] || break
    sleep 0.05
  done
  echo "$line"
}

# running NODE: removes a stale pid file on the way.
running() {
  local pid=
  [[ -e $DIR/node-$1.pid ]] || return 1
  pid=$(<"$DIR/node-$1.pid")
  if [[ $pid =~ ^[0-9]+$ ]] && kill -0 "$pid" 2>/dev/null && [[ $(arguments "$pid") == *"$DIR/node-$1.properties"* ]]; then
    return 0
  fi
  rm -f "$DIR/node-$1.pid"
  return 1
}

any_running() {
  local i
  for ((i = 1; i <= $1; i++)); do running "$i" && return 0; done
  return 1
}

# listening PORT: something answers there on the loopback address.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports NODE ends the script if a port that the node needs is taken.
free_ports() {
  local base offset offsets=(0 1)
  base=$(port "$1")
  [[ -z $SASL ]] || offsets=(0 1 2 3 4 5 6)
  for offset in "${offsets[@]}"; do
    listening $((base + offset)) &&
      die "port $((base + offset)), which node $1 needs, is in use by another program; choose another KAFKA_PORT"
  done
  return 0
}

# start_node NODE starts it in a session of its own: neither Ctrl-C nor the end of this script
# reaches it.
start_node() {
  running "$1" && return
  local detach=(nohup)
  if command -v setsid >/dev/null; then detach=(setsid); fi
  : >"$DIR/node-$1.log"
  # The shell writes its own pid and becomes the JVM. HEAP and JVM are several flags, split on purpose.
  # shellcheck disable=SC2016,SC2046,SC2086
  "${detach[@]}" bash -c 'echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@"' node "$DIR/node-$1.pid" \
    java $HEAP $JVM $(log_flag) -cp "$JARS/*" kafka.Kafka "$DIR/node-$1.properties" \
    >>"$DIR/node-$1.log" 2>&1 </dev/null &
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    [[ -e $DIR/node-$1.pid ]] && return
    sleep 0.05
  done
  die "node $1 could not be started; see $DIR/node-$1.log"
}

# await_node NODE returns when it serves: it is registered, unfenced and listens.
await_node() {
  local end=$((SECONDS + WAIT)) why=
  until grep -q 'Kafka Server started' "$DIR/node-$1.log" && listening "$(port "$1")"; do
    if ! running "$1"; then
      why="node $1 ended at once"
    elif ((SECONDS >= end)); then
      why="node $1 does not serve after $WAIT s (KAFKA_WAIT)"
    fi
    if [[ -n $why ]]; then
      tail -n 15 "$DIR/node-$1.log" >&2
      die "$why; its log is $DIR/node-$1.log"
    fi
    sleep 0.2
  done
}

# signal_node NODE SIGNAL, if it runs.
signal_node() { if running "$1"; then kill "-$2" "$(<"$DIR/node-$1.pid")" 2>/dev/null || true; fi; }

# await_end NODE returns when it has ended; one that does not end in time is killed.
await_end() {
  local end=$((SECONDS + WAIT))
  while running "$1"; do
    if ((SECONDS >= end)); then
      say "node $1 does not stop after $WAIT s (KAFKA_WAIT); killing it"
      signal_node "$1" KILL
      end=$((SECONDS + WAIT))
    fi
    sleep 0.1
  done
}
