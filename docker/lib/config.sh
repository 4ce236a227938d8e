# shellcheck shell=bash
#
# The files of a cluster: server.properties, storage, logging, keys. Needs DIR, NODES, PORT,
# VERSION, SASL and JARS.

# Any fixed id will do: the clusters of a machine never meet.
CLUSTER_ID=a2JlbmNoLWthZmthLTAwMQ

USER_NAME=alice
USER_SECRET=alice-secret
STORE_SECRET=changeit

# Flags of a JVM that is gone in a second: no optimising compiler, no threads for the heap.
BRIEF_JVM=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)

# Listeners that KAFKA_SASL adds, with their distance from the node's port. MTLS is SSL that asks
# for a client certificate, REAUTH is SASL_SSL whose sessions end after KAFKA_REAUTH_MS.
SECURE_LISTENERS=(SASL_PLAINTEXT:2 SSL:3 SASL_SSL:4 MTLS:5 REAUTH:6)
MECHANISMS=(plain scram-sha-256 scram-sha-512 oauthbearer)

write_config() {
  local i
  write_log4j
  if [[ -n $SASL ]]; then
    write_keys
    write_clients
  fi
  for ((i = 1; i <= NODES; i++)); do
    running "$i" || { node_properties "$i"; secure_properties; extra_properties; } >"$DIR/node-$i.properties"
  done
  echo "$NODES $VERSION ${SASL:--} $PORT" >"$DIR/cluster"
}

voters() {
  local i list=
  for ((i = 1; i <= NODES; i++)); do list+="${list:+,}$i@127.0.0.1:$(($(port "$i") + 1))"; done
  echo "$list"
}

# listeners NODE HOST: those that clients use.
listeners() {
  local p list one
  p=$(port "$1")
  list="PLAINTEXT://127.0.0.1:$p"
  if [[ -n $SASL ]]; then
    for one in "${SECURE_LISTENERS[@]}"; do list+=",${one%:*}://$2:$((p + ${one#*:}))"; done
  fi
  echo "$list"
}

node_properties() {
  local copies=$((NODES < 3 ? NODES : 3))
  local isr=$((copies < 3 ? 1 : 2))
  cat <<X
node.id=$1
process.roles=broker,controller
controller.quorum.voters=$(voters)
listeners=$(listeners "$1" 127.0.0.1),CONTROLLER://127.0.0.1:$(($(port "$1") + 1))
advertised.listeners=$(listeners "$1" localhost)
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,MTLS:SSL,REAUTH:SASL_SSL
log.dirs=$DIR/data/$1
num.partitions=1
default.replication.factor=$copies
auto.create.topics.enable=false
offsets.topic.replication.factor=$copies
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=$copies
transaction.state.log.min.isr=$isr
transaction.state.log.num.partitions=5
share.coordinator.state.topic.replication.factor=$copies
share.coordinator.state.topic.min.isr=$isr
share.coordinator.state.topic.num.partitions=5
group.initial.rebalance.delay.ms=0
broker.rack=rack-$1
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
X
}

secure_properties() {
  [[ -n $SASL ]] || return 0
  local listener mechanism
  cat <<X
ssl.keystore.location=$DIR/server.p12
ssl.keystore.password=$STORE_SECRET
ssl.keystore.type=PKCS12
listener.name.mtls.ssl.client.auth=required
listener.name.mtls.ssl.truststore.location=$DIR/trust.p12
listener.name.mtls.ssl.truststore.password=$STORE_SECRET
listener.name.mtls.ssl.truststore.type=PKCS12
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
X
  for mechanism in "${MECHANISMS[@]}"; do
    for listener in sasl_plaintext sasl_ssl reauth; do
      echo "listener.name.$listener.$mechanism.sasl.jaas.config=$(server_jaas "$mechanism")"
    done
    echo "listener.name.reauth.$mechanism.connections.max.reauth.ms=${KAFKA_REAUTH_MS:-10000}"
  done
}

# server_jaas MECHANISM: what a listener needs to check it. OAUTHBEARER without a validator
# takes unsecured tokens (RFC 7515 appendix A.5).
server_jaas() {
  local common=org.apache.kafka.common.security
  case $1 in
    plain) echo "$common.plain.PlainLoginModule required user_$USER_NAME=\"$USER_SECRET\";" ;;
    scram-*) echo "$common.scram.ScramLoginModule required;" ;;
    oauthbearer) echo "$common.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";" ;;
  esac
}

extra_properties() {
  [[ -n ${KAFKA_EXTRA:-} ]] || return 0
  [[ -r $KAFKA_EXTRA ]] || die "KAFKA_EXTRA: cannot read $KAFKA_EXTRA"
  cat "$KAFKA_EXTRA"
}

# write_keys makes a certificate authority, a certificate for the loopback address, one for
# clients, and stores of each kind that trust the authority. ca.pem comes last: it says that all
# of it is there.
write_keys() {
  [[ -e $DIR/ca.pem ]] && return
  command -v keytool >/dev/null || die "no keytool; KAFKA_SASL needs it: apt-get install openjdk-17-jre-headless"
  rm -f "$DIR"/{ca,server,client,trust}.p12 "$DIR"/{client,trust}.jks
  key_pair ca "kbench test authority" -ext bc:c=ca:true -ext ku:c=keyCertSign
  key_pair server localhost
  key_pair client kbench-client
  keytool_in ca -exportcert -rfc -alias ca >"$DIR/ca.pem.new" 2>/dev/null || die "keytool exported no certificate"
  sign server -ext SAN=dns:localhost,ip:127.0.0.1 -ext eku=serverAuth
  sign client -ext eku=clientAuth
  local kind
  for kind in p12:PKCS12 jks:JKS; do
    quietly key_tool -importcert -noprompt -alias ca -file "$DIR/ca.pem.new" -keystore "$DIR/trust.${kind%:*}" \
      -storetype "${kind#*:}" -storepass "$STORE_SECRET"
  done
  quietly key_tool -importkeystore -noprompt -srckeystore "$DIR/client.p12" -srcstorepass "$STORE_SECRET" \
    -destkeystore "$DIR/client.jks" -deststoretype JKS -deststorepass "$STORE_SECRET"
  mv "$DIR/ca.pem.new" "$DIR/ca.pem"
}

# quietly COMMAND…: keytool tells much that is of no use while it works.
quietly() { "$@" >"$DIR/keytool.log" 2>&1 || die "keytool failed: $(tail -n 1 "$DIR/keytool.log")"; }

key_tool() { keytool "${BRIEF_JVM[@]/#/-J}" "$@"; }

# keytool_in NAME ARG…: on the store of that name.
keytool_in() {
  local name=$1
  shift
  key_tool -keystore "$DIR/$name.p12" -storetype PKCS12 -storepass "$STORE_SECRET" "$@"
}

# key_pair NAME CN ARG…: a key, and a certificate that it signs itself. Elliptic curves are fast.
key_pair() {
  local name=$1 cn=$2
  shift 2
  quietly keytool_in "$name" -genkeypair -alias "$name" -keyalg EC -groupname secp256r1 -validity 3650 -dname "CN=$cn" "$@"
}

# sign NAME ARG…: the authority's certificate in place of the key's own.
sign() {
  local name=$1
  shift
  keytool_in "$name" -certreq -alias "$name" 2>"$DIR/keytool.log" |
    keytool_in ca -gencert -rfc -alias ca -validity 3650 "$@" 2>"$DIR/keytool.log" >"$DIR/$name.pem" ||
    die "keytool signed no certificate: $(tail -n 1 "$DIR/keytool.log")"
  quietly keytool_in "$name" -importcert -noprompt -alias ca -file "$DIR/ca.pem.new"
  quietly keytool_in "$name" -importcert -noprompt -alias "$name" -file "$DIR/$name.pem"
}

# write_clients leaves settings for clients, by mechanism, as Kafka's own tools read them.
write_clients() {
  local common=org.apache.kafka.common.security
  local password="username=\"$USER_NAME\" password=\"$USER_SECRET\";"
  client_properties plain PLAIN "$common.plain.PlainLoginModule required $password"
  client_properties scram-sha-256 SCRAM-SHA-256 "$common.scram.ScramLoginModule required $password"
  client_properties scram-sha-512 SCRAM-SHA-512 "$common.scram.ScramLoginModule required $password"
  client_properties oauthbearer OAUTHBEARER \
    "$common.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"$USER_NAME\";"
  client_trust SSL >"$DIR/client-ssl.properties"
  { client_trust SSL; client_identity; } >"$DIR/client-mtls.properties"
}

# client_properties FILE MECHANISM JAAS: without and with TLS.
client_properties() {
  printf '%s\n' security.protocol=SASL_PLAINTEXT "sasl.mechanism=$2" "sasl.jaas.config=$3" >"$DIR/client-$1.properties"
  { client_trust SASL_SSL; printf '%s\n' "sasl.mechanism=$2" "sasl.jaas.config=$3"; } >"$DIR/client-$1-ssl.properties"
}

client_trust() {
  printf '%s\n' "security.protocol=$1" ssl.truststore.type=PEM "ssl.truststore.location=$DIR/ca.pem"
}

client_identity() {
  printf '%s\n' ssl.keystore.type=PKCS12 "ssl.keystore.location=$DIR/client.p12" "ssl.keystore.password=$STORE_SECRET"
}

# format_storage makes the data folders of nodes that have none, all at once.
format_storage() {
  local i pid pids=() scram=()
  if [[ -n $SASL ]]; then
    for i in 256 512; do scram+=(--add-scram "SCRAM-SHA-$i=[name=$USER_NAME,password=$USER_SECRET]"); done
  fi
  for ((i = 1; i <= NODES; i++)); do
    [[ -e $DIR/data/$i/meta.properties ]] && continue
    # shellcheck disable=SC2046 # one flag a word
    java -Xmx256m "${BRIEF_JVM[@]}" $(log_flag) -cp "$JARS/*" kafka.tools.StorageTool format \
      -t "$CLUSTER_ID" -c "$DIR/node-$i.properties" ${scram[@]+"${scram[@]}"} >"$DIR/node-$i.log" 2>&1 &
    pids+=("$!:$i")
  done
  for pid in ${pids[@]+"${pids[@]}"}; do
    wait "${pid%:*}" || { tail -n 20 "$DIR/node-${pid#*:}.log" >&2; die "node ${pid#*:}: its storage could not be formatted"; }
  done
}

# log_flag points a JVM at the logging configuration.
log_flag() {
  if kafka3; then echo "-Dlog4j.configuration=file:$DIR/log4j.properties"; else echo "-Dlog4j2.configurationFile=file:$DIR/log4j2.properties"; fi
}

# write_log4j: warnings, and the one line by which a node says that it serves.
write_log4j() {
  if kafka3; then
    cat >"$DIR/log4j.properties" <<'X'
log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c - %m%n
X
  else
    cat >"$DIR/log4j2.properties" <<'X'
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=out
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
appender.out.type=Console
appender.out.name=out
appender.out.target=SYSTEM_ERR
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c - %m%n
X
  fi
}
