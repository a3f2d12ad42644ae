// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Allowed asks the policy. Every plan does so before it looks at the process'
// memory. names are all that the thing is known by.
func (r *Request) Allowed(action string, values []*attunev1.Value, names ...string) error {
	options := r.actuator.options
	// The memory is opened before the owner is asked: then what is written is of the
	// image that was asked about, or fails. What needs no memory is allowed without.
	if _, err := r.Process.Hold(); err != nil && !errors.Is(err, proc.ErrPermission) {
		return err
	}
	owner, err := r.owner()
	if err != nil {
		return err
	}
	var rules *policy.Policy // nil has an answer, too
	if options.Policy != nil {
		rules = options.Policy()
	}
	err = rules.Check(policy.Request{
		Action: action, Names: names, Values: values, Asker: cmp.Or(options.Asker, authn.Self()), Owner: owner,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", access.ErrRefused, err)
	}
	return nil
}

// owner is whose process it is for who asks. Where that is not the
// controller's own user, the kernel does not look after the difference.
func (r *Request) owner() (int, error) {
	if r.actuator.options.Asker == nil {
		return access.OwnerOf(r.Process.PID())
	}
	owner, err := procid.Owner(r.Process.PID())
	return int(owner), err
}
