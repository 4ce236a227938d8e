//go:build kafka

package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// secureListener is a listener of docker/kafka with KAFKA_SASL, by its distance from the node's port.
func secureListener(t *testing.T, c *kafkatest.Cluster, distance int) string {
	_, port, err := net.SplitHostPort(c.Bootstrap[0])
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return net.JoinHostPort("localhost", strconv.Itoa(n+distance))
}

// M9: a run with producers and consumers over sessions of ten seconds loses nothing, and keeps no
// secret: the token's only secret is one of its claims.
func TestM9KafkaRunOverSeveralSessions(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	claims := fmt.Sprintf(`{"sub":"alice","exp":%d,"secret":%q}`, time.Now().Add(time.Hour).Unix(), canary)
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("net:\n  tls: {trustStore: {location: "+
		filepath.Join(cluster.Dir, "ca.pem")+"}}\n  sasl: {mechanism: OAUTHBEARER, tokenFile: token}\n"), 0o600))
	out := filepath.Join(dir, "result")
	e := start(t, dir, []string{"KBENCH_COMMAND_CONFIG=c.yaml"}, args("run", "quick", "-b", secureListener(t, cluster, 6),
		"--out", out, "--rate", "1000", "--duration", "12s", steady)...).wait()
	e.requireCode(t, codeDone)
	r := loadResult(t, out)
	run := &r.Points[0].Runs[0]
	requireWholeRun(t, run, 1)
	require.EqualValues(t, 12000, run.Counts.Attempted)
	require.Equal(t, "SASL_SSL", r.Provenance.Cluster.SecurityProtocol)
	require.Equal(t, "OAUTHBEARER", r.Provenance.Cluster.SASLMechanism)
	requireNoSecret(t, e, out)
	require.NotContains(t, e.out+e.err, encode([]byte(claims))[:40])
}

// What a real broker says about wrong passwords and tokens is told, and they are not.
func TestKafkaRefusesWrongSecrets(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for mechanism, keys := range map[string]string{
		"PLAIN": "user: alice, password: " + canary, "SCRAM-SHA-256": "user: alice, password: " + canary,
		"SCRAM-SHA-512": "user: nobody, password: " + canary, "OAUTHBEARER": "token: " + canary,
	} {
		t.Run(mechanism, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("net: {sasl: {mechanism: "+mechanism+", "+keys+"}}"), 0o600))
			broker := secureListener(t, cluster, 2)
			e := kbenchIn(t, dir, "run", "quick", "-b", broker, "--command-config", "c.yaml", "-q")
			e.requireCode(t, codeError)
			e.requireOneLine(t, "broker "+broker+": "+mechanism+" authentication failed: ")
			requireNoSecret(t, e)
		})
	}
}
