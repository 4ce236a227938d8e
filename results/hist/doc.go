// Package hist records latencies in HdrHistogram's bucket layout, merges them exactly, and
// writes and reads HdrHistogram logs.
//
// The layout is the one of hdrhistogram.New(1000, 120e9, 3): nanoseconds, 1 µs to 120 s, three
// significant digits, so that a value is off by 0.1 % at most from 1 ms on and by 0.5 µs at most
// below. Two things differ from HdrHistogram's own recorders: counters stand in pages that are
// made when first touched, because a run keeps thousands of windows of which each touches a
// few hundred counters out of 19 456; and no value is ever refused, because a refused value is
// a latency that goes missing. What does not fit is counted at the end it falls off, and the
// number of such values is kept (Clamped, Negative).
//
// Layout and log format: http://hdrhistogram.org and the HdrHistogram project's
// AbstractHistogram and HistogramLogWriter.
package hist
