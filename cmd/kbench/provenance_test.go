package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Release and settings of every broker are in the result, secrets are not; what a broker does not tell is a
// note, and no reason not to measure.
func TestBrokersAreDescribed(t *testing.T) {
	t.Parallel()
	const describeConfigs, authorization = 32, 31
	c, brokers := keptTopic(t)
	var describe func(node int32, r kmsg.Request) (kmsg.Response, error)
	describe = func(node int32, r kmsg.Request) (kmsg.Response, error) {
		c.Answer(describeConfigs, describe)
		asked := r.(*kmsg.DescribeConfigsRequest).Resources[0]
		if asked.ResourceType != kmsg.ConfigResourceTypeBroker {
			return nil, nil // of a topic: left to the broker
		}
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		res := kmsg.NewDescribeConfigsResponseResource()
		res.ResourceType, res.ResourceName = asked.ResourceType, asked.ResourceName
		if node == 1 {
			res.ErrorCode = authorization
		}
		for name, value := range map[string]string{"num.io.threads": "4", "sasl.jaas.config": "hunter2"} {
			e := kmsg.NewDescribeConfigsResponseResourceConfig()
			e.Name, e.Value, e.Source = name, &value, kmsg.ConfigSourceStaticBrokerConfig
			res.Configs = append(res.Configs, e)
		}
		resp.Resources = append(resp.Resources, res)
		return resp, nil
	}
	c.Answer(describeConfigs, describe)
	dir := filepath.Join(t.TempDir(), "r")
	e := kbenchIn(t, t.TempDir(), args("run", "quick", light, "-b", brokers, "--out", dir)...)
	e.requireCode(t, codeDone)
	cluster := loadResult(t, dir).Provenance.Cluster
	require.Len(t, cluster.Brokers, 2)
	require.Equal(t, map[string]string{"num.io.threads": "4"}, cluster.Brokers[0].Config)
	require.Empty(t, cluster.Brokers[1].Config)
	require.Equal(t, cluster.Version, cluster.Brokers[1].Version)
	require.NotEmpty(t, cluster.Version)
	require.Len(t, cluster.Notes, 1)
	require.True(t, strings.HasPrefix(cluster.Notes[0], "broker 1: its settings are not known: "), cluster.Notes[0])
}
