// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"errors"
	"os"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/exitcode"
)

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
