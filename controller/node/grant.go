// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// grant is what the policy allows in a session.
type grant struct {
	mode    string // the most; "": nothing
	reason  string
	refused string // why, where nothing is allowed, as metrics have it
}

// denied is why nothing may be done at all; empty: something may.
func (g grant) denied() string {
	if g.mode != "" {
		return ""
	}
	return g.reason
}

// untouched is why nothing may be changed; empty: the policy of actions decides.
func (g grant) untouched() string {
	switch g.mode {
	case "tune":
		return ""
	case "":
		return g.reason
	}
	return fmt.Sprintf("the policy of this node allows to %s: %s", g.mode, g.reason)
}

// rules say what may be done to whom: the policy of the day, and nothing where Attune
// is switched off. Its methods may be called from any goroutine.
type rules struct {
	policy func() *policy.Policy
	// off says whether Attune is switched off, and why.
	off func() (why string, off bool)
}

// granted asks what may be done to a process of a user that executes a program, for a
// registration. With [registry.HandedOver] it has yet to execute that, and what it may get at
// the most is told.
func (r rules) granted(registration *attunev1.Registration, uid uint32, executable string) grant {
	if why, off := r.off(); off {
		return grant{reason: why, refused: metrics.RefusedOff}
	}
	ask := r.policy().Service
	if executable == registry.HandedOver {
		ask = r.policy().ServiceAtMost
	}
	mode, reason := ask(policy.Asking{Owner: registration.GetOwner(), UID: uid, Executable: executable})
	if asked := slices.Index(policy.Modes, registration.GetMode()); asked >= 0 && asked < slices.Index(policy.Modes, mode) {
		return grant{mode: registration.GetMode(), reason: "no more is asked for"}
	}
	return grant{mode: mode, reason: reason, refused: metrics.RefusedPolicy}
}
