package broker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// command is a line that a parent writes to its child's standard input: a failure to install under a
// number, or, without one, the end of the failure of that number.
type command struct {
	Number int      `json:"number"`
	Fail   *Failure `json:"fail,omitempty"`
}

// longestCommand bounds a line; it is this program's own that writes them.
const longestCommand = 1 << 20

// obey carries out the commands of a stream until its end. What it does not understand goes to complain.
func obey(from io.Reader, k *kfake.Cluster, complain io.Writer) {
	installed := map[int]*Fault{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestCommand)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			_, _ = fmt.Fprintf(complain, "embedded broker: a line of its standard input is no command: %v\n", err)
			continue
		}
		if old := installed[c.Number]; old != nil {
			old.Remove()
			delete(installed, c.Number)
		}
		if c.Fail != nil {
			installed[c.Number] = install(k, *c.Fail)
		}
	}
}

// install has a cluster fail requests. An unknown code answers UNKNOWN_SERVER_ERROR.
func install(k *kfake.Cluster, f Failure) *Fault {
	var err *kerr.Error
	if !errors.As(kerr.ErrorForCode(f.Code), &err) {
		err = kerr.UnknownServerError
	}
	return &Fault{h: k.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Key(f.Key)}, Nodes: f.Nodes, Topic: f.Topic, Partitions: f.Partitions,
		Group: f.Group, TxnID: f.TxnID, TopLevel: f.TopLevel, Err: err, Count: f.Count,
	})}
}

// Fail has the child fail requests until undo is called. It does not wait for the child to have read the
// command, which takes less than a millisecond.
func (c *Child) Fail(f Failure) (undo func() error, err error) {
	c.commanding.Lock()
	defer c.commanding.Unlock()
	c.commands++
	number := c.commands
	if err := c.tell(command{Number: number, Fail: &f}); err != nil {
		return nil, err
	}
	return func() error {
		c.commanding.Lock()
		defer c.commanding.Unlock()
		return c.tell(command{Number: number})
	}, nil
}

// tell writes a command. Called with commanding held.
func (c *Child) tell(what command) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if _, err := c.lifeline.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("embedded broker process takes no commands any more: %w", errors.Join(err, c.Err()))
	}
	return nil
}
