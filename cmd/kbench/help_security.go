package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client/security"
)

const securityLong = `How to connect to a cluster: the file of --command-config, or of $KBENCH_COMMAND_CONFIG.

A file that ends in .yaml or .yml is kbench's own; any other is Java properties, as Kafka's own
tools take them: security.protocol, sasl.mechanism, sasl.jaas.config, ssl.truststore.…,
ssl.keystore.…, ssl.key.password, ssl.endpoint.identification.algorithm, bootstrap.servers and
sasl.oauthbearer.…. Stores are PEM, PKCS12 or JKS. What else a Kafka client has is named in a
warning and not used; what no client has is refused.

  net:
    tls:
      trustStore: {location: ca.pem}
    sasl:
      mechanism: SCRAM-SHA-512
      user: alice

Every key has an environment variable that is used when the file does not have the key, so that
a secret need not be in a file, and a file is not needed. Secrets are never taken from flags and
are in no output, result or report. Paths are relative to the working folder.
`

// newSecurityTopic is a topic of help, not a command.
func newSecurityTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "command-config",
		Short: "Keys and variables that say how to connect: TLS and SASL",
		Long:  securityLong + "\n" + securityKeys(),
	}
}

// securityKeys lists keys, variables and what they mean.
func securityKeys() string {
	var b strings.Builder
	for _, v := range security.Variables() {
		fmt.Fprintf(&b, "  %s  $%s\n", v.Key, v.Name)
		text := v.Doc
		if len(v.Enum) > 0 {
			text += " One of " + strings.Join(v.Enum, ", ") + "."
		}
		for _, line := range wrap(text, 90) {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
