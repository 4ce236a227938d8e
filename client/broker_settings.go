package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// Bounds of what is kept of a broker's settings: it may answer anything.
const (
	maxSettings     = 500
	maxSettingName  = 200
	maxSettingValue = 1000
)

// Settings asks the broker for the settings of its own that are not defaults, by Kafka's names, static and
// dynamic ones. Secrets are left out: what the broker calls sensitive, whatever its type, and what may be one
// by its name. More than 500 settings and those with overlong names are left out, and counted in more; values
// are cut to 1 000 bytes. It needs the right DescribeConfigs on the cluster.
func (b *Broker) Settings(ctx context.Context) (settings map[string]string, more int, err error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	res := kmsg.NewDescribeConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b.ID()))
	req.Resources = append(req.Resources, res)
	resp, err := b.Request(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	answer, ok := resp.(*kmsg.DescribeConfigsResponse)
	if !ok || len(answer.Resources) != 1 {
		return nil, 0, fmt.Errorf("broker %s answered DescribeConfigs with something else than its own settings", b.Addr())
	}
	of := &answer.Resources[0]
	if err := wire.ErrorWith(of.ErrorCode, of.ErrorMessage); err != nil {
		return nil, 0, err
	}
	settings = map[string]string{}
	for i := range of.Configs {
		e := &of.Configs[i]
		switch {
		case isDefault(e) || e.Value == nil || e.IsSensitive || maybeSecret(e.Name):
		case len(settings) >= maxSettings || len(e.Name) > maxSettingName:
			more++
		default:
			settings[strings.ToValidUTF8(e.Name, "?")] = cut(*e.Value)
		}
	}
	return settings, more, nil
}

func isDefault(e *kmsg.DescribeConfigsResponseResourceConfig) bool {
	if e.Source > kmsg.ConfigSourceUnknown {
		return e.Source == kmsg.ConfigSourceDefaultConfig
	}
	return e.IsDefault
}

// maybeSecret says whether a setting may be one by its name: plugins name theirs as they like.
func maybeSecret(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".key") || slices.ContainsFunc([]string{"password", "passwd", "passphrase", "secret", "jaas", "credential", "private", "token"},
		func(part string) bool { return strings.Contains(name, part) })
}

func cut(value string) string {
	if len(value) > maxSettingValue {
		value = value[:maxSettingValue] + "…"
	}
	return strings.ToValidUTF8(value, "?")
}
