//go:build !linux

package run

const haveNanosleep = false

func newThreadSleeper(s *sleeper) pacer { return s }
