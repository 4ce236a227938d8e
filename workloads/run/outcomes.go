package run

// outcomes is the Outcomes of one producer.
type outcomes struct {
	pool *pool // set before the producer is used
	rec  *recorder
	txn  *portion // nil without transactions
}

// Decided records a run and takes its messages back.
func (o *outcomes) Decided(batch []*Message, _, acked int64) {
	if len(batch) > 0 {
		if o.txn != nil { // before the messages are used again
			o.txn.add(batch)
		}
		o.pool.decided(batch, acked, o.rec)
	}
}

// Request records one answered request.
func (o *outcomes) Request(kind string, written, read int64) { o.rec.request(kind, written, read) }
