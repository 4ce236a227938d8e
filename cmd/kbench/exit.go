package main

import (
	"errors"
	"slices"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
)

// Exit codes; `kbench --help` explains them.
const (
	codeDone         = 0
	codeError        = 1
	codeUsage        = 2
	codeThreshold    = 3
	codeInconclusive = 4
	codeInvalid      = 5
	codeInterrupted  = 130
)

// precedence says which code is returned when several apply: the first of these.
var precedence = []int{codeInterrupted, codeError, codeUsage, codeInvalid, codeThreshold, codeInconclusive}

// worse is the code to return when a and b apply.
func worse(a, b int) int {
	for _, c := range precedence {
		if a == c || b == c {
			return c
		}
	}
	return codeDone
}

// exitError ends kbench with a code. Without an error it says nothing: the summary has said it.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error of who called.
func usage(err error) error { return &exitError{code: codeUsage, err: err} }

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var exit *exitError
	var problems settings.Problems
	var unknown *workloads.UnknownError
	switch {
	case err == nil:
		return codeDone
	case errors.As(err, &exit) && slices.Contains(precedence, exit.code):
		return exit.code
	case errors.As(err, &problems), errors.As(err, &unknown), errors.Is(err, plan.ErrNothing):
		return codeUsage
	}
	return codeError
}
