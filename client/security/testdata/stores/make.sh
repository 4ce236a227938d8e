#!/usr/bin/env bash
#
# make.sh: writes the stores beside it, with keytool and openssl. Passwords are changeit unless the
# name says otherwise. The tests hold the expiry dates far off; run it again when they are near.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export LC_ALL=C.UTF-8
rm -f -- *.pem *.p12 *.jks

tool() { keytool -storepass changeit "$@" 2>/dev/null; }
pair() { # store, alias, name, more
  local store=$1 alias=$2 cn=$3
  shift 3
  tool -genkeypair -keystore "$store" -storetype PKCS12 -alias "$alias" -validity 36500 -dname "CN=$cn" "$@"
}

# An authority, a server and a client of it.
pair ca-key.p12 ca authority -keyalg EC -groupname secp256r1 -ext bc:c=ca:true -ext ku:c=keyCertSign
tool -exportcert -rfc -keystore ca-key.p12 -alias ca >ca.pem
for name in server client; do
  usage=clientAuth san=()
  [[ $name == client ]] || { usage=serverAuth san=(-ext SAN=dns:localhost,ip:127.0.0.1); }
  pair $name.p12 $name $name -keyalg RSA -keysize 2048
  tool -certreq -keystore $name.p12 -alias $name |
    tool -gencert -rfc -keystore ca-key.p12 -alias ca -validity 36500 -ext eku=$usage ${san[@]+"${san[@]}"} >$name-cert.pem
  tool -importcert -noprompt -keystore $name.p12 -alias ca -file ca.pem
  tool -importcert -noprompt -keystore $name.p12 -alias $name -file $name-cert.pem
done

# Trust stores.
tool -importcert -noprompt -keystore trust.p12 -storetype PKCS12 -alias ca -file ca.pem
tool -importcert -noprompt -keystore trust.jks -storetype JKS -alias ca -file ca.pem
tool -importcert -noprompt -keystore trust-two.jks -storetype JKS -alias ca -file ca.pem
tool -importcert -noprompt -keystore trust-two.jks -alias server -file server-cert.pem
cp trust.p12 trust-is-p12.jks
keytool -importcert -noprompt -keystore trust-umlaut.jks -storetype JKS -storepass pässword -alias ca -file ca.pem 2>/dev/null
openssl pkcs12 -export -nokeys -in ca.pem -out trust-openssl.p12 -passout pass:changeit
tool -importcert -noprompt -keystore trust.jceks -storetype JCEKS -alias ca -file ca.pem

# Key stores.
tool -importkeystore -noprompt -srckeystore client.p12 -srcstorepass changeit -destkeystore client.jks -deststoretype JKS -deststorepass changeit
cp client.jks client-keypassword.jks
tool -keypasswd -keystore client-keypassword.jks -alias client -keypass changeit -new another
cp client.jks client-two.jks
tool -genkeypair -keystore client-two.jks -alias other -keyalg RSA -keysize 2048 -dname CN=other -keypass changeit
openssl pkcs12 -in client.p12 -passin pass:changeit -nodes -nocerts 2>/dev/null | openssl pkey -out client-key.pem
openssl pkcs12 -export -in client-cert.pem -inkey client-key.pem -certfile ca.pem -out client-openssl.p12 -passout pass:changeit
openssl pkcs12 -export -legacy -in client-cert.pem -inkey client-key.pem -certfile ca.pem -out client-legacy.p12 -passout pass:changeit
cat client-key.pem client-cert.pem ca.pem >client.pem
openssl pkcs8 -topk8 -in client-key.pem -out encrypted-key.pem -passout pass:changeit
openssl pkcs8 -topk8 -v2 des3 -v2prf hmacWithSHA1 -in client-key.pem -out encrypted-des3-key.pem -passout pass:changeit
openssl rsa -in client-key.pem -traditional -out pkcs1-key.pem 2>/dev/null
openssl rsa -in client-key.pem -traditional -aes128 -passout pass:changeit -out old-encrypted-key.pem 2>/dev/null
cat encrypted-key.pem client-cert.pem >client-encrypted.pem
openssl ecparam -name prime256v1 -genkey -noout -out other-ec-key.pem
