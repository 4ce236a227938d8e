package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// settingsOf has a broker answer DescribeConfigs with settings of its own.
func settingsOf(configs ...kmsg.DescribeConfigsResponseResourceConfig) func(int32, kmsg.Request) (kmsg.Response, error) {
	return func(_ int32, r kmsg.Request) (kmsg.Response, error) {
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		res := kmsg.NewDescribeConfigsResponseResource()
		res.ResourceType, res.ResourceName, res.Configs = kmsg.ConfigResourceTypeBroker, r.(*kmsg.DescribeConfigsRequest).Resources[0].ResourceName, configs
		resp.Resources = append(resp.Resources, res)
		return resp, nil
	}
}

func setting(name, value string, source kmsg.ConfigSource, sensitive bool) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value, c.Source, c.IsSensitive = name, &value, source, sensitive
	return c
}

// What a broker sends of its settings is kept where it is not a default and cannot be a secret, within bounds.
func TestBrokerSettings(t *testing.T) {
	const describeConfigs, authorization = 32, 31
	c := cluster(t, 1, 1)
	cl, err := NewClient(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	b := cl.Brokers()[0]

	fixed, dynamic := kmsg.ConfigSourceStaticBrokerConfig, kmsg.ConfigSourceDynamicBrokerConfig
	none := setting("a.null", "", fixed, false)
	none.Value = nil
	list := []kmsg.DescribeConfigsResponseResourceConfig{
		setting("num.io.threads", "4", fixed, false), setting("log.retention.ms", "1", dynamic, false),
		setting("num.network.threads", "3", kmsg.ConfigSourceDefaultConfig, false),
		setting("plugin.thing", "hunter2", fixed, true), none,
		setting("long.value", strings.Repeat("x", 5000), fixed, false), setting(strings.Repeat("n", 5000), "1", fixed, false),
	}
	for _, name := range []string{"ssl.keystore.password", "listener.name.a.plain.sasl.JAAS.config", "my.secret.id", "ssl.key.passphrase", "ssl.keystore.key", "my.credentials", "auth.Token"} {
		list = append(list, setting(name, "hunter2", fixed, false)) // as a plugin would that does not say so
	}
	c.Answer(describeConfigs, settingsOf(list...))
	settings, more, err := b.Settings(within(t))
	require.NoError(t, err)
	require.Equal(t, 1, more, "the one whose name is too long")
	require.Equal(t, map[string]string{"num.io.threads": "4", "log.retention.ms": "1", "long.value": strings.Repeat("x", 1000) + "…"}, settings)

	list = nil
	for i := range 3000 {
		list = append(list, setting(fmt.Sprint("s", i), "v", fixed, false))
	}
	c.Answer(describeConfigs, settingsOf(list...))
	settings, more, err = b.Settings(within(t))
	require.NoError(t, err)
	require.Len(t, settings, 500)
	require.Equal(t, 2500, more)

	c.Answer(describeConfigs, func(_ int32, r kmsg.Request) (kmsg.Response, error) { return r.ResponseKind(), nil })
	_, _, err = b.Settings(within(t))
	require.ErrorContains(t, err, "something else than its own settings")

	f := c.Fail(broker.Failure{Key: describeConfigs, Code: authorization, Count: 1})
	_, _, err = b.Settings(within(t))
	require.ErrorIs(t, err, wire.ErrClusterAuthorizationFailed)
	f.Remove()
	settings, _, err = b.Settings(within(t))
	require.NoError(t, err, "the embedded broker tells its own")
	require.LessOrEqual(t, len(settings), 500)
}
