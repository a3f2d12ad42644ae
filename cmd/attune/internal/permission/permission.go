// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/offswitch"
)

// OffVariable names another file than offswitch.Path, for root only: users must
// not choose the switch that they are held to.
const OffVariable = "ATTUNE_OFF_FILE"

// Switches are those that this process is held to: the node's, and the user's.
func Switches() []offswitch.Switch {
	all := []offswitch.Switch{nodeSwitch()}
	if own := settings.UserDir(os.Getenv); own != "" {
		all = append(all, UserSwitch(own))
	}
	return all
}

func nodeSwitch() offswitch.Switch {
	if other := os.Getenv(OffVariable); other != "" && os.Geteuid() == 0 {
		return offswitch.Switch(other)
	}
	return offswitch.Path
}

// UserSwitch is that of a user with this directory of settings.
func UserSwitch(config string) offswitch.Switch {
	return offswitch.Switch(filepath.Join(config, "off"))
}

// MySwitch is the one that this user turns; empty: they have none.
func MySwitch() offswitch.Switch {
	if os.Geteuid() == 0 {
		return nodeSwitch()
	}
	if own := settings.UserDir(os.Getenv); own != "" {
		return UserSwitch(own)
	}
	return ""
}

// SwitchedOff says whether attune is switched off here for this user, and why.
func SwitchedOff() (reason string, off bool) { return offswitch.Any(Switches()...)() }

// ErrSwitchedOff is for commands that would touch processes; nil: they may.
func ErrSwitchedOff() error {
	reason, off := SwitchedOff()
	if !off {
		return nil
	}
	return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("attune is switched off: %s", reason), Remedy: "`attune on` switches it on"}
}

// PolicyVariable names another policy file, for root only: a user must not
// choose the rules that they are held to.
const PolicyVariable = "ATTUNE_POLICY"

// Policy reads the policy of this node. With the error comes one that denies
// everything, also where attune is switched off.
func Policy() (*policy.Policy, error) {
	if err := ErrSwitchedOff(); err != nil {
		return policy.Denying(err), err
	}
	path := policy.Path
	if other := os.Getenv(PolicyVariable); other != "" {
		if os.Geteuid() != 0 {
			err := errors.New(PolicyVariable + " is for root only")
			return policy.Denying(err), exitcode.UsageError(err, "take it out of the environment")
		}
		path = other
	}
	return policy.Load(path)
}
