// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/offswitch"
)

// offVariable names another file than offswitch.Path, for root only: users must
// not choose the switch that they are held to.
const offVariable = "ATTUNE_OFF_FILE"

const offLong = `Off switches attune off: for the whole node if root says so, for their own
programs if another user does. Within a second everything that was changed is
given back, measuring ends, and programs run on as if attune were not there.
Until attune on, attune run and packed programs do nothing but start the
program, attach and tune refuse, and attuned (of the node's switch only) takes no
process.

It is a file and stays over a restart: /etc/attune/off, and off in the user's
directory of settings. One job is kept out by ATTUNE=off in its environment.`

func newOff(p *process) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "off",
		Short: "Switch attune off, and give everything back",
		Long:  offLong,
		Example: `  sudo attune off --reason 'the new kernel is on trial'
  attune off`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			s := mySwitch()
			if s == "" {
				return noSwitch()
			}
			if err := s.TurnOff(cmp.Or(reason, "by "+whoAsks())); err != nil {
				return err
			}
			_, err := fmt.Fprintf(p.stdout, "attune is switched off %s (%s); attune on switches it on again\n", reach(), s)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "told to whoever asks why nothing is tuned (default: who switched it off)")
	return cmd
}

func newOn(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "on",
		Short: "Switch attune on again",
		Long: `On takes back what attune off did. Programs that were running then are left alone
until they end.`,
		Example: "  sudo attune on",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			s := mySwitch()
			if s == "" {
				return noSwitch()
			}
			if _, err := s.TurnOn(); err != nil {
				return err
			}
			state := "on"
			if reason, off := switchedOff(); off {
				state = "still off: " + reason
			}
			_, err := fmt.Fprintf(p.stdout, "attune is switched %s\n", state)
			return err
		},
	}
}

func noSwitch() error {
	return exitcode.UsageError(errors.New("there is no directory of settings"), "set HOME")
}

// switches are those that this process is held to: the node's, and the user's.
func switches() []offswitch.Switch {
	all := []offswitch.Switch{nodeSwitch()}
	if own := userConfig(os.Getenv); own != "" {
		all = append(all, userSwitch(own))
	}
	return all
}

func nodeSwitch() offswitch.Switch {
	if other := os.Getenv(offVariable); other != "" && os.Geteuid() == 0 {
		return offswitch.Switch(other)
	}
	return offswitch.Path
}

func userSwitch(config string) offswitch.Switch {
	return offswitch.Switch(filepath.Join(config, "off"))
}

// mySwitch is the one that this user turns; empty: they have none.
func mySwitch() offswitch.Switch {
	if os.Geteuid() == 0 {
		return nodeSwitch()
	}
	if own := userConfig(os.Getenv); own != "" {
		return userSwitch(own)
	}
	return ""
}

// reach is what mySwitch is about, for people.
func reach() string {
	if os.Geteuid() == 0 {
		return "on this node"
	}
	return "for your programs"
}

// switchedOff says whether attune is switched off here for this user, and why.
func switchedOff() (reason string, off bool) { return offswitch.Any(switches()...)() }

// errSwitchedOff is for commands that would touch processes; nil: they may.
func errSwitchedOff() error {
	reason, off := switchedOff()
	if !off {
		return nil
	}
	return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("attune is switched off: %s", reason), Remedy: "`attune on` switches it on"}
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
