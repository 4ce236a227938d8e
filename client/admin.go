package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// TopicSpec describes a topic to create.
type TopicSpec struct {
	Name       string
	Partitions int32 // −1: the broker's default (num.partitions)
	// ReplicationFactor is the number of replicas; −1: the broker's default.
	ReplicationFactor int16
	// Config holds topic settings by Kafka's own names; others keep the broker's defaults.
	Config map[string]string
}

// CreateTopics creates topics, and waits until every partition of them has a leader that this
// client knows and that serves it. The error names each topic that could not be created.
func (c *Client) CreateTopics(ctx context.Context, topics ...TopicSpec) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(c.cfg.Admin.Timeout.Milliseconds())
	for _, t := range topics {
		req.Topics = append(req.Topics, t.request())
	}
	err := c.askController(ctx, req, func(r kmsg.Response) error {
		var errs []error
		for i := range r.(*kmsg.CreateTopicsResponse).Topics {
			t := &r.(*kmsg.CreateTopicsResponse).Topics[i]
			if err := wire.ErrorWith(t.ErrorCode, t.ErrorMessage); err != nil {
				errs = append(errs, fmt.Errorf("topic %q: %w", t.Topic, err))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("creating topics: %w", err)
	}
	for _, t := range topics {
		if err := c.awaitLeaders(ctx, t.Name); err != nil {
			return fmt.Errorf("creating topics: %w", err)
		}
	}
	if err := c.awaitServing(ctx, topics); err != nil {
		return fmt.Errorf("creating topics: %w", err)
	}
	return nil
}

func (t TopicSpec) request() kmsg.CreateTopicsRequestTopic {
	r := kmsg.NewCreateTopicsRequestTopic()
	r.Topic, r.NumPartitions, r.ReplicationFactor = t.Name, t.Partitions, t.ReplicationFactor
	for k, v := range t.Config {
		cfg := kmsg.NewCreateTopicsRequestTopicConfig()
		cfg.Name, cfg.Value = k, kmsg.StringPtr(v)
		r.Configs = append(r.Configs, cfg)
	}
	return r
}

// awaitLeaders waits until a topic is described with a leader for every partition.
func (c *Client) awaitLeaders(ctx context.Context, topic string) error {
	for attempt := 1; ; attempt++ {
		if err := c.RefreshMetadata(ctx, topic); err != nil {
			return err
		}
		t := c.meta.Load().topics[topic]
		if t != nil && len(t.partitions) > 0 && len(t.writable) == len(t.partitions) {
			return nil
		}
		if err := c.sleep(ctx, c.adminWait(attempt)); err != nil {
			return fmt.Errorf("%w (waiting for its leaders: %w)", topicError(topic, t), err)
		}
	}
}

// awaitServing waits until the leaders answer for every partition of topics that have leaders.
// Brokers tell of a topic a moment before they take its messages: what is produced in between is
// refused and has to be tried again, and with acks=0 is lost.
func (c *Client) awaitServing(ctx context.Context, topics []TopicSpec) error {
	var queries []OffsetQuery
	for _, t := range topics {
		partitions, err := c.Partitions(ctx, t.Name)
		if err != nil {
			return err
		}
		for _, p := range partitions {
			queries = append(queries, OffsetQuery{Topic: t.Name, Partition: p, Time: OffsetNewest})
		}
	}
	for len(queries) > 0 {
		answers, err := c.ListOffsets(ctx, ReadUncommitted, queries...)
		if err != nil {
			return err
		}
		queries = queries[:0]
		for i := range answers {
			if err := answers[i].Err; wire.Classify(err).Has(wire.Retriable) {
				queries = append(queries, answers[i].OffsetQuery)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// DeleteTopics deletes topics. One that does not exist is no error.
func (c *Client) DeleteTopics(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = int32(c.cfg.Admin.Timeout.Milliseconds())
	req.TopicNames = names
	c.forget(names)
	err := c.askController(ctx, req, func(r kmsg.Response) error {
		var errs []error
		for i := range r.(*kmsg.DeleteTopicsResponse).Topics {
			t := &r.(*kmsg.DeleteTopicsResponse).Topics[i]
			err := wire.ErrorWith(t.ErrorCode, t.ErrorMessage)
			if err == nil || errors.Is(err, wire.ErrUnknownTopicOrPartition) {
				continue
			}
			name := ""
			if t.Topic != nil {
				name = *t.Topic
			}
			errs = append(errs, fmt.Errorf("topic %q: %w", name, err))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("deleting topics: %w", err)
	}
	return nil
}

// forget takes topics out of what refreshes are about.
func (c *Client) forget(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		delete(c.used, t)
	}
}

// askController sends a request to the controller and has read judge the answer. It looks the
// controller up again and retries, with backoff, what may pass.
func (c *Client) askController(ctx context.Context, req kmsg.Request, read func(kmsg.Response) error) error {
	for attempt := 1; ; attempt++ {
		err := c.askControllerOnce(ctx, req, read)
		if err == nil || !wire.Classify(err).Has(wire.Retriable) || attempt > c.cfg.Admin.Retry.Max {
			return err
		}
		if c.sleep(ctx, c.adminWait(attempt)) != nil || c.RefreshMetadata(ctx) != nil {
			return err
		}
	}
}

func (c *Client) askControllerOnce(ctx context.Context, req kmsg.Request, read func(kmsg.Response) error) error {
	b, err := c.Controller(ctx)
	if err != nil {
		return err
	}
	r, err := b.Request(ctx, req)
	if err != nil {
		return err
	}
	return read(r)
}

// TopicDescription is what the cluster says of a topic.
type TopicDescription struct {
	Name     string
	Leaders  []int32   // by partition; −1 without a leader
	Replicas [][]int32 // by partition
	ISR      [][]int32 // by partition
}

// DescribeTopic asks the cluster for a topic's partitions, leaders and replicas as they are now.
func (c *Client) DescribeTopic(ctx context.Context, topic string) (TopicDescription, error) {
	if err := c.RefreshMetadata(ctx, topic); err != nil {
		return TopicDescription{}, err
	}
	t, err := c.topic(ctx, topic)
	if err != nil {
		return TopicDescription{}, err
	}
	d := TopicDescription{Name: topic}
	for _, p := range t.partitions {
		d.Leaders = append(d.Leaders, p.leader)
		d.Replicas = append(d.Replicas, slices.Clone(p.replicas()))
		d.ISR = append(d.ISR, slices.Clone(p.isr()))
	}
	return d, nil
}

// TopicConfig asks the cluster for the settings in effect of a topic, by Kafka's own names;
// sensitive ones are left out.
func (c *Client) TopicConfig(ctx context.Context, topic string) (map[string]string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	res := kmsg.NewDescribeConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	req.Resources = append(req.Resources, res)
	out := map[string]string{}
	err := c.askController(ctx, req, func(r kmsg.Response) error {
		for i := range r.(*kmsg.DescribeConfigsResponse).Resources {
			d := &r.(*kmsg.DescribeConfigsResponse).Resources[i]
			if err := wire.ErrorWith(d.ErrorCode, d.ErrorMessage); err != nil {
				return err
			}
			for _, e := range d.Configs {
				if e.Value != nil && !e.IsSensitive {
					out[e.Name] = *e.Value
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("describing topic %q: %w", topic, err)
	}
	return out, nil
}

// MaxMessageBytes is the broker's limit on a batch of a topic (max.message.bytes).
func (c *Client) MaxMessageBytes(ctx context.Context, topic string) (int, error) {
	cfg, err := c.TopicConfig(ctx, topic)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(cfg["max.message.bytes"])
	if err != nil {
		return 0, fmt.Errorf("topic %q: the broker does not tell max.message.bytes", topic)
	}
	return n, nil
}
