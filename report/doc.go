// Package report turns results into what people and programs read: the summary on the terminal,
// Markdown, JSON, one self-contained HTML file, and plots as SVG and PNG.
//
// Figures of several runs of a point are medians over its valid runs (over all of them when none
// is valid), with the smallest and the largest beside them; percentile curves are drawn from the
// merged histograms of the same runs. The headline series is response in an open loop and service
// in a closed one. A figure from an invalid run is never shown without its reasons.
//
// Everything in a result is treated as foreign text: it is escaped for the format it goes to, and
// a log or timeline that cannot be read leaves a note in the report instead of ending it.
package report
