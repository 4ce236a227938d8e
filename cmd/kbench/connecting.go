package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kbench/kbench/client/security"
)

// connecting are the flags that say which cluster, and how to connect to it; every subcommand that
// talks to brokers has them. Secrets have no flag: flags show in ps and in the shell's history.
type connecting struct {
	commandConfig string
	brokers       []string // after read: those of the flag, the environment or the file

	security *security.Settings // after read
}

// The environment variables that stand in for --brokers and --command-config.
const (
	brokersEnv       = "KBENCH_BROKERS"
	commandConfigEnv = "KBENCH_COMMAND_CONFIG"
)

func (c *connecting) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&c.brokers, "brokers", "b", nil, "bootstrap addresses, host:port separated by commas (also --bootstrap-server; default $KBENCH_BROKERS, else an embedded broker)")
	f.StringVar(&c.commandConfig, "command-config", "", "file that says how to connect, TLS and SASL: client.properties, or YAML ('kbench help command-config'; default $KBENCH_COMMAND_CONFIG)")
}

// read finds the brokers and how to connect to them, and passes warnings on unless quiet.
func (c *connecting) read(cmd *cobra.Command, quiet bool) error {
	return c.readFor(cmd, quiet, false)
}

// readFor is read of a command that uses all of a properties file, or only what is about connecting.
func (c *connecting) readFor(cmd *cobra.Command, quiet, all bool) error {
	var err error
	if c.brokers, err = addresses(c.brokers, cmd.Flags().Changed("brokers")); err != nil {
		return err
	}
	if c.security, err = readSecurity(c.commandConfig, cmd.Flags().Changed("command-config")); err != nil {
		return err
	}
	if len(c.brokers) == 0 {
		c.brokers = c.security.Brokers
	}
	if len(c.brokers) == 0 && c.security.Given() {
		return usage(fmt.Errorf("it is said how to connect (--command-config, $%s or $KBENCH_TLS_…, $KBENCH_SASL_…), but not to which cluster: name it by --brokers", commandConfigEnv))
	}
	if !quiet {
		for _, w := range c.security.Warnings {
			if all && w == c.security.Ignored {
				continue
			}
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "kbench: warning:", w) // nothing depends on it
		}
	}
	return nil
}

// readSecurity reads the file that the flag or the environment names, if any, and the environment.
func readSecurity(file string, given bool) (*security.Settings, error) {
	if !given {
		file = os.Getenv(commandConfigEnv)
	} else if file == "" {
		return nil, usage(fmt.Errorf("--command-config names no file; give one, or leave it out"))
	}
	return security.Load(file, os.Environ())
}

// addresses are the brokers that the user named, by flag or environment; none when neither was
// given. One that was given and names nothing is refused: an unset variable of a script must not
// lead to figures of the embedded broker.
func addresses(flag []string, given bool) ([]string, error) {
	from := "--brokers"
	if !given {
		from, flag = "$"+brokersEnv, strings.Split(os.Getenv(brokersEnv), ",")
		given = os.Getenv(brokersEnv) != ""
	}
	var out []string
	for _, a := range flag {
		if a = strings.TrimSpace(a); a != "" {
			out = append(out, a)
		}
	}
	if given && len(out) == 0 {
		return nil, usage(fmt.Errorf("%s names no broker; give host:port, or leave it out to use the embedded broker", from))
	}
	return out, nil
}
