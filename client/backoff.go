// How long to wait before something is tried again.

package client

import (
	"sync/atomic"
	"time"
)

// wait is the backoff before the given attempt, 1 being the first retry. Where the user's BackoffFunc
// panics, that is counted in panics and logged under the name of the setting, and the backoff of the
// other settings does. No lock is held.
func (r *RetryConfig) wait(attempt int, where string, cfg *Config, panics *atomic.Int64) time.Duration {
	if r.BackoffFunc != nil {
		d, panicked := r.byUser(attempt)
		if panicked == nil {
			return d
		}
		_ = caught(cfg, panics, where+".backoffFunc", panicked)
	}
	return r.bySettings(attempt)
}

// byUser asks BackoffFunc, whose panics stay here.
func (r *RetryConfig) byUser(attempt int) (d time.Duration, panicked any) {
	userCode.Add(1)
	defer func() {
		userCode.Add(-1)
		panicked = recover()
	}()
	return r.BackoffFunc(attempt), nil
}

func (r *RetryConfig) bySettings(attempt int) time.Duration {
	d := r.Backoff
	for i := 1; i < attempt && d < r.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, max(r.MaxBackoff, r.Backoff))
}

// metadataWait is the backoff of questions about the cluster.
func (c *Client) metadataWait(attempt int) time.Duration {
	return c.cfg.Metadata.Retry.wait(attempt, "metadata.retry", &c.cfg, &c.panics)
}

// adminWait is the backoff of administrative requests, and of those to coordinators.
func (c *Client) adminWait(attempt int) time.Duration {
	return c.cfg.Admin.Retry.wait(attempt, "admin.retry", &c.cfg, &c.panics)
}

// retryWait is the backoff of sending something.
func (p *AsyncProducer) retryWait(attempt int) time.Duration {
	return p.cfg.Producer.Retry.wait(attempt, "producer.retry", &p.cfg, &p.panics)
}

// retryWait is the backoff of sending something.
func (p *BatchProducer) retryWait(attempt int) time.Duration {
	return p.cfg.Producer.Retry.wait(attempt, "producer.retry", &p.cfg, &p.panics)
}
