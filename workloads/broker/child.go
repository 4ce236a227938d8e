package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what a parent waits for.
const (
	startBound = 10 * time.Second // from starting the process to its first line
	stopBound  = 5 * time.Second  // from SIGTERM to SIGKILL
	pipeBound  = time.Second      // for output still in the pipes of a child that has ended
)

// LifelineFlag is the flag of `kbench broker` that ends it when its standard input ends.
const LifelineFlag = "exit-with-stdin"

// ChildOptions say how a broker process is started. The zero value runs `broker` of this
// program's own binary.
type ChildOptions struct {
	Options
	// Path of the program; empty: this program (os.Executable).
	Path string
	// Args come before those of Options; nil: "broker", the subcommand.
	Args []string
	// Env is added to this process's environment, as KEY=VALUE.
	Env []string
	// Stderr gets what the child writes to its standard error; nil drops it. The last lines are
	// kept for errors in any case.
	Stderr io.Writer
}

// Child is a broker in a process of its own. It ends when it is closed, and also when this
// process ends, however that happens: the kernel kills it on Linux, and it exits when its
// standard input, a pipe that only this process holds, reaches its end. Its process group is
// its own, so that Ctrl-C reaches only this process.
//
// Its methods are safe for concurrent use.
type Child struct {
	cmd       *exec.Cmd
	lifeline  io.WriteCloser // the parent's end of the child's standard input
	bootstrap []string
	stderr    *tail
	asked     atomic.Bool   // the exit is this process's doing
	exited    chan struct{} // closed by the goroutine of run, after err is set
	err       error

	commanding sync.Mutex // one command at a time
	commands   int        // given so far
}

// StartError says why a child never served.
type StartError struct {
	Reason error
	Stderr string // the last lines that the child wrote, if any
}

func (e *StartError) Error() string {
	text := "embedded broker process did not start: " + e.Reason.Error()
	if e.Stderr != "" {
		text += "; its last words:\n" + e.Stderr
	}
	return text
}

// Unwrap gives the reason.
func (e *StartError) Unwrap() error { return e.Reason }

// ExitError says that a child ended without being asked to.
type ExitError struct {
	State  string // as of os.ProcessState, e.g. "signal: killed"
	Stderr string // the last lines that the child wrote, if any
}

func (e *ExitError) Error() string {
	text := "embedded broker process ended by itself (" + e.State + ")"
	if e.Stderr != "" {
		text += "; its last words:\n" + e.Stderr
	}
	return text
}

// StartChild starts a broker process and returns when it serves: within 10 s, or when ctx
// ends, or with a *StartError. ctx bounds only the start; the caller closes the child.
func StartChild(ctx context.Context, o ChildOptions) (*Child, error) {
	if err := o.Validate(); err != nil {
		return nil, &StartError{Reason: err}
	}
	if o.Path == "" {
		path, err := os.Executable()
		if err != nil {
			return nil, &StartError{Reason: fmt.Errorf("where is this program's own binary: %w", err)}
		}
		o.Path = path
	}
	c, first, err := prepare(o)
	if err != nil {
		return nil, &StartError{Reason: err}
	}
	started := make(chan error, 1) // written once by run, read here, never closed
	// Owned by the child: ends with the process, which Stop and the lifeline end; Stop waits.
	go c.run(started)
	if err := <-started; err != nil {
		return nil, &StartError{Reason: err}
	}
	if err := c.await(ctx, first); err != nil {
		c.kill()
		<-c.exited
		return nil, &StartError{Reason: err, Stderr: c.stderr.String()}
	}
	return c, nil
}

// prepare makes the command and its pipes; first gets the child's first line.
func prepare(o ChildOptions) (c *Child, first *firstLine, err error) {
	args := o.Args
	if args == nil {
		args = []string{"broker"}
	}
	args = append(append([]string{}, args...), o.Options.Args()...)
	args = append(args, "--"+LifelineFlag)
	cmd := exec.Command(o.Path, args...)
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = pipeBound
	first = &firstLine{line: make(chan string, 1)}
	last := &tail{also: o.Stderr}
	cmd.Stdout, cmd.Stderr = first, last
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return &Child{cmd: cmd, lifeline: lifeline, stderr: last, exited: make(chan struct{})}, first, nil
}

// run starts the process and waits for its end.
//
// It holds its thread: the kernel's parent-death signal follows the thread that started the
// child, not the process, and Go ends a thread whose goroutine ended while locked.
func (c *Child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.cmd.Start(); err != nil {
		close(c.exited)
		started <- err
		return
	}
	started <- nil
	err := c.cmd.Wait()
	state := c.cmd.ProcessState
	switch {
	case c.asked.Load():
	case state != nil:
		c.err = &ExitError{State: state.String(), Stderr: c.stderr.String()}
	default:
		c.err = &ExitError{State: err.Error(), Stderr: c.stderr.String()}
	}
	close(c.exited)
}

// await waits for the child's first line and takes the addresses from it.
func (c *Child) await(ctx context.Context, first *firstLine) error {
	bound := time.NewTimer(startBound)
	defer bound.Stop()
	select {
	case line := <-first.line:
		return c.greet(line)
	case <-c.exited:
		select { // both may be ready: a child that printed and then ended is worth its words
		case line := <-first.line:
			return c.greet(line)
		default:
			return fmt.Errorf("it ended at once (%s)", c.cmd.ProcessState)
		}
	case <-bound.C:
		return fmt.Errorf("it printed no address within %s", startBound)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Child) greet(line string) (err error) {
	c.bootstrap, err = parseBootstrap(line)
	if err != nil {
		return fmt.Errorf("its first line %.200q is no list of addresses: %w", line, err)
	}
	return nil
}

// Bootstrap is the address of every node.
func (c *Child) Bootstrap() []string { return append([]string(nil), c.bootstrap...) }

// PID of the process, also after its end.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited is closed once the process has ended; Err says why.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Err is nil while the process runs and after it was asked to end, else an *ExitError.
func (c *Child) Err() error {
	select {
	case <-c.exited:
		return c.err
	default:
		return nil
	}
}

// Stop asks the process to end, kills it after 5 s, and returns when it has ended. It returns
// what Err says, so that a broker that ended too early is not overlooked.
func (c *Child) Stop() error {
	c.asked.Store(true)
	_ = c.lifeline.Close()
	_ = terminate(c.cmd.Process)
	bound := time.NewTimer(stopBound)
	defer bound.Stop()
	select {
	case <-c.exited:
	case <-bound.C:
		c.kill()
		<-c.exited
	}
	return c.err
}

// Close is Stop.
func (c *Child) Close() error { return c.Stop() }

// Kill ends the process at once, as a crash does, and returns when it has ended.
func (c *Child) Kill() {
	c.kill()
	<-c.exited
}

func (c *Child) kill() {
	c.asked.Store(true)
	_ = c.cmd.Process.Kill() // an error means that it has ended
}

// Pause freezes the process, connections and all, until Resume. Stop works on a paused child.
func (c *Child) Pause() error { return c.signal(pause) }

// Resume lets a paused process go on.
func (c *Child) Resume() error { return c.signal(resume) }

func (c *Child) signal(send func(*os.Process) error) error {
	select {
	case <-c.exited:
		return errors.Join(errors.New("embedded broker process has ended"), c.err)
	default:
		return send(c.cmd.Process)
	}
}

// firstLine is a child's standard output: its first line is kept, the rest dropped. Written by
// one goroutine of os/exec.
type firstLine struct {
	line chan string // written once; never closed
	buf  []byte
	done bool
}

const maxFirstLine = 64 << 10

func (f *firstLine) Write(p []byte) (int, error) {
	if f.done {
		return len(p), nil
	}
	f.buf = append(f.buf, p...)
	end := bytes.IndexByte(f.buf, '\n')
	if end < 0 && len(f.buf) > maxFirstLine {
		end = maxFirstLine
	}
	if end >= 0 {
		f.line <- string(f.buf[:end])
		f.done, f.buf = true, nil
	}
	return len(p), nil
}

// tail keeps the last lines written to it.
type tail struct {
	also io.Writer // may be nil

	mu  sync.Mutex
	buf []byte
}

const (
	tailBytes = 8 << 10
	tailLines = 10
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.mu.Unlock()
	if t.also != nil {
		_, _ = t.also.Write(p) // the child must not stall for who listens to it
	}
	return len(p), nil
}

// String is the last lines, indented.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.buf))
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(len(lines)-tailLines, 0):]
	return "    " + strings.Join(lines, "\n    ")
}
