package kafka

import (
	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// headers is the client's form of a message's headers, in memory of the message's own.
type headers struct {
	stamp [1]client.Header // of a message that has no others
	all   []client.Header  // made with the first message that has
}

// of gives those of a message: the payload's, then the stamp's; nil without any.
func (h *headers) of(m *run.Message) []client.Header {
	if len(m.Headers) == 0 {
		if m.Header == nil {
			return nil
		}
		h.stamp[0] = client.Header{Key: run.HeaderName, Value: m.Header}
		return h.stamp[:]
	}
	if h.all == nil {
		h.all = make([]client.Header, 0, len(m.Headers)+1)
	}
	h.all = h.all[:0]
	for _, one := range m.Headers {
		h.all = append(h.all, client.Header{Key: one.Name, Value: one.Value})
	}
	if m.Header != nil {
		h.all = append(h.all, client.Header{Key: run.HeaderName, Value: m.Header})
	}
	return h.all
}
