# shellcheck shell=bash
#
# Kafka's jars, by Maven, into the user's cache. Needs VERSION; sets JARS.

JARS=${XDG_CACHE_HOME:-$HOME/.cache}/kbench/kafka-$VERSION

# need_java ends the script unless there is a Java that runs Kafka.
need_java() {
  local major
  command -v java >/dev/null || die "no java; Kafka needs Java 17 or later: apt-get install openjdk-17-jre-headless"
  major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [[ ${major:-0} -ge 17 ]] || die "java is version ${major:-unknown}; Kafka needs 17 or later: apt-get install openjdk-17-jre-headless"
}

# kafka3 tells whether VERSION is of the 3.x line, which logs through reload4j.
kafka3() { [[ $VERSION == 3.* ]]; }

logging_dependency() {
  if kafka3; then
    echo '<groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version>'
  else
    echo '<groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.1</version>'
  fi
}

# fetch_jars fills JARS once; a folder that is there is complete, since it is moved in whole.
fetch_jars() {
  JARS=${XDG_CACHE_HOME:-$HOME/.cache}/kbench/kafka-$VERSION
  [[ -d $JARS ]] && return
  command -v mvn >/dev/null || die "no mvn; Kafka's jars come by Maven: apt-get install maven"
  local work=
  mkdir -p "$(dirname "$JARS")"
  work=$(mktemp -d "$JARS.XXXXXX")
  say "fetching Kafka $VERSION (once)"
  write_pom >"$work/pom.xml"
  if ! mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >"$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    rm -rf "$work"
    die "Maven could not get Kafka $VERSION; is that a release, and is Maven Central within reach?"
  fi
  mv -T "$work/jars" "$JARS" 2>/dev/null || [[ -d $JARS ]] || die "cannot write $JARS"
  rm -rf "$work"
}

write_pom() {
  cat <<X
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kbench</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$VERSION</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$VERSION</version></dependency>
    <dependency>$(logging_dependency)</dependency>
  </dependencies>
</project>
X
}

# tool_class NAME: the full name of a tool's class, looked up in the jars by its path.
tool_class() {
  local package jar
  if [[ $1 == *.* ]]; then
    echo "$1"
    return
  fi
  for package in org.apache.kafka.tools kafka.tools kafka.admin org.apache.kafka.tools.consumer \
    org.apache.kafka.tools.consumer.group org.apache.kafka.tools.reassign; do
    for jar in "$JARS"/kafka-tools-[0-9]*.jar "$JARS"/kafka_*.jar; do
      if grep -aqF "${package//.//}/$1.class" "$jar"; then
        echo "$package.$1"
        return
      fi
    done
  done
  die "Kafka $VERSION has no tool $1"
}
