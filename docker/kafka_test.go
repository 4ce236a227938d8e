//go:build kafka

package docker_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The clusters that tests with the tag "kafka" use must be there, and be what they say.
func TestRealKafkaIsThere(t *testing.T) {
	for variable, nodes := range map[string]int{"KBENCH_TEST_KAFKA_1": 1, "KBENCH_TEST_KAFKA_3": 3, "KBENCH_TEST_KAFKA_39": 1} {
		t.Run(variable, func(t *testing.T) {
			list := os.Getenv(variable)
			require.NotEmpty(t, list, "set %s to the bootstrap list of a cluster of %d node(s); `make test` does", variable, nodes)
			addresses := strings.Split(list, ",")
			require.Len(t, addresses, nodes)
			for _, address := range addresses {
				require.Equal(t, nodes, brokers(t, address), "brokers that %s knows", address)
			}
		})
	}
}

// brokers asks one node how many there are.
func brokers(t *testing.T, address string) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	request := kmsg.NewPtrMetadataRequest()
	request.SetVersion(12)
	request.Topics = []kmsg.MetadataRequestTopic{}
	_, err = conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("kbench-test")).AppendRequest(nil, request, 1))
	require.NoError(t, err)
	var size [4]byte
	_, err = io.ReadFull(conn, size[:])
	require.NoError(t, err)
	n := binary.BigEndian.Uint32(size[:])
	require.Less(t, n, uint32(1<<20))
	body := make([]byte, n)
	_, err = io.ReadFull(conn, body)
	require.NoError(t, err)
	response := request.ResponseKind().(*kmsg.MetadataResponse)
	require.NoError(t, response.ReadFrom(body[5:]))
	return len(response.Brokers)
}
