package workloads

import (
	"time"

	"github.com/kbench/kbench/client/settings"
)

// fakeClient is a client schema with keys like the real one's and one rule across keys.
type fakeClient struct{}

type fakeConfig struct {
	ClientID          string `key:"clientID" doc:"Name told to brokers."`
	ChannelBufferSize int    `key:"channelBufferSize" unit:"messages"`
	Net               struct {
		MaxOpenRequests int `key:"maxOpenRequests" doc:"Requests in flight on one connection."`
		SASL            struct {
			Password string `key:"password" secret:"true"`
		} `key:"sasl"`
	} `key:"net"`
	Producer struct {
		RequiredAcks string `key:"requiredAcks" enum:"0,1,all"`
		Idempotent   bool   `key:"idempotent"`
		Compression  string `key:"compression" enum:"none,gzip,snappy,lz4,zstd"`
		Flush        struct {
			Messages  int           `key:"messages" unit:"messages"`
			Bytes     int           `key:"bytes" unit:"bytes"`
			Frequency time.Duration `key:"frequency"`
		} `key:"flush"`
		Batch struct {
			Async bool `key:"async"`
		} `key:"batch"`
	} `key:"producer"`
	Consumer struct {
		MaxWait        time.Duration `key:"maxWait"`
		IsolationLevel string        `key:"isolationLevel" enum:"read_uncommitted,read_committed"`
		Group          struct {
			SessionTimeout time.Duration `key:"sessionTimeout"`
		} `key:"group"`
	} `key:"consumer"`
}

func fakeDefaults() *fakeConfig {
	c := &fakeConfig{ClientID: "kbench", ChannelBufferSize: 256}
	c.Net.MaxOpenRequests, c.Producer.RequiredAcks = 5, "all"
	c.Consumer.MaxWait = 500 * time.Millisecond
	return c
}

func (fakeClient) Fields() []settings.Field { return settings.Fields(fakeDefaults()) }

func (fakeClient) Check(as []settings.Assignment) settings.Problems {
	c := fakeDefaults()
	if problems := settings.Apply(c, as...); len(problems) > 0 {
		return problems
	}
	if c.Producer.Idempotent && c.Producer.RequiredAcks != "all" {
		return settings.Problems{{Key: "producer.idempotent", Text: "needs producer.requiredAcks=all"}}
	}
	return nil
}
