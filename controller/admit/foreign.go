// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Rights say whose processes a session may reach.
type Rights struct {
	// User whose processes they are; nil: anybody's that the owner reaches.
	User *attunev1.Principal
	// Owner of the session; nil: the kernel judges.
	Owner *attunev1.Principal
	// Denied is why a process that executes a program must be left alone; empty, and nil: it
	// need not.
	Denied func(executable string) string
}

// whyAlone is why an image must be left alone: it is Foreign, or its program is denied. The
// second is asked once for each image: what was begun is not left undone because rules
// have changed.
func (r Rights) whyAlone(image *attunev1.Process) error {
	if err := r.Foreign(int(image.GetIdentity().GetPid())); err != nil {
		return err
	}
	if r.Denied != nil {
		if why := r.Denied(image.GetExecutable()); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// Foreign is why a process of the session must be left alone: it is another
// user's, or has more rights than its user has, as a setuid program that the
// application starts. The kernel does not look after that, since the service
// runs as root. Nil without an owner of the session, whom the kernel then judges.
// An exec may change it at any time: it is asked anew each time.
func (r Rights) Foreign(pid int) error {
	if r.Owner == nil {
		return nil
	}
	owner, err := procid.Owner(pid)
	if err != nil {
		return err
	}
	if r.User != nil && r.User.GetUid() != owner || !authn.Reaches(r.Owner, owner) {
		return fmt.Errorf("it belongs to user %d, or has more rights than its user, and %w: the session is one of user %d",
			owner, proc.ErrLeftAlone, r.User.GetUid())
	}
	return nil
}
