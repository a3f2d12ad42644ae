// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/procid"
)

// foreign is why a process of the session must be left alone: it is another
// user's, or has more rights than its user has, as a setuid program that the
// application starts. The kernel does not look after that, since the service
// runs as root. Nil without an owner of the session, whom the kernel then judges.
// An exec may change it at any time: it is asked anew each time.
func (c *Controller) foreign(pid int) error {
	session := c.config.Session
	if session.Owner == nil {
		return nil
	}
	owner, err := procid.Owner(pid)
	if err != nil {
		return err
	}
	if session.User != nil && session.User.GetUid() != owner || !authn.Reaches(session.Owner, owner) {
		return fmt.Errorf("it belongs to user %d, or has more rights than its user, and is left alone: the session is one of user %d",
			owner, session.User.GetUid())
	}
	return nil
}

// closeWays notes that none of the ways into a process is open.
func (c *Controller) closeWays(t *member.Member) {
	for _, mechanism := range []string{mechanismDMLib, mechanismUprobe, mechanismVMWrite} {
		t.SetMechanism(mechanism, false, t.OutOfReach().Error())
	}
}
