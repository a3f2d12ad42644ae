// SPDX-License-Identifier: Apache-2.0

package off

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/offswitch"
)

const offLong = `Off switches attune off: for the whole node if root says so, for their own
programs if another user does. Within a second what attune run, attach, packed
programs and attuned have changed is given back, what a killed attune run of your own
has left too, their measuring ends, and programs run on as if attune were not there.
What was changed by hand (attune tune, attune advice apply, --keep) stays until attune
undo, and points of attune probe until they are removed.
Until attune on, attune run and packed programs do nothing but start the
program, attach and tune refuse, and attuned (of the node's switch only) takes no
process.

It is a file and stays over a restart: /etc/attune/off, and off in the user's
directory of settings. One job is kept out by ATTUNE=off in its environment.`

// Command returns `attune off`.
func Command(p *cli.Env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "off",
		Short: "Switch attune off, and give everything back",
		Long:  offLong,
		Example: `  sudo attune off --reason 'the new kernel is on trial'
  attune off`,
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			s := permission.MySwitch()
			if s == "" {
				return noSwitch()
			}
			said, err := turnOff(s, reason)
			if err != nil {
				return err
			}
			cli.OutlivePipes() // what was changed is given back, whoever reads of it
			fmt.Fprintln(p.Stdout, said)
			return byhand.UndoKilled(p)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "told, after who switched it off, to whoever asks why nothing is tuned")
	return cmd
}

// turnOff turns a switch off, and returns what people are told of it.
func turnOff(s offswitch.Switch, reason string) (said string, err error) {
	if given, off := s.Off(); off && reason == "" {
		return fmt.Sprintf("attune is off already %s (%s): %s", reach(), s, given), nil
	}
	by := "by " + whoAsks() // first: of a long reason, and of one of several lines, the beginning is read
	if reason != "" {
		by += ": " + reason
	}
	if err := s.TurnOff(by); err != nil {
		return "", err
	}
	return fmt.Sprintf("attune is switched off %s (%s); attune on switches it on again", reach(), s), nil
}

// On returns `attune on`.
func On(p *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "on",
		Short: "Switch attune on again",
		Long: `On takes back what attune off did. Programs that were running then are left alone
until they end.`,
		Example: "  sudo attune on",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			s := permission.MySwitch()
			if s == "" {
				return noSwitch()
			}
			if _, err := s.TurnOn(); err != nil {
				return err
			}
			state := "on"
			if reason, off := permission.SwitchedOff(); off {
				state = "still off: " + reason
			}
			_, err := fmt.Fprintf(p.Stdout, "attune is switched %s\n", state)
			return err
		},
	}
}

func noSwitch() error {
	return exitcode.UsageError(errors.New("there is no directory of settings"), "set HOME")
}

// reach is what mySwitch is about, for people.
func reach() string {
	if os.Geteuid() == 0 {
		return "on this node"
	}
	return "for your programs"
}

// whoAsks is the name of the user, also behind sudo.
func whoAsks() string {
	if name := os.Getenv("SUDO_USER"); name != "" && os.Geteuid() == 0 {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Geteuid())
}
