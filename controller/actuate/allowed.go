// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxStatus is more than a status file of /proc has.
const maxStatus = 64 << 10

// allowed asks the policy. Every plan does so before it looks at the process'
// memory. names are all that the thing is known by.
func (a *Actuator) allowed(process Process, action string, values []*attunev1.Value, names ...string) error {
	owner, err := a.ownerOf(process.PID())
	if err != nil {
		return err
	}
	var rules *policy.Policy // nil has an answer, too
	if a.options.Policy != nil {
		rules = a.options.Policy()
	}
	err = rules.Check(policy.Request{
		Action: action, Names: names, Values: values, Asker: cmp.Or(a.options.Asker, authn.Self()), Owner: owner,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// namesOf are the names of a symbol for the policy: as the object has it, and
// as it was asked for.
func namesOf(found objfile.Resolved, object, symbol string) []string {
	return []string{found.Image.Name() + ":" + found.Symbol.Name, object + ":" + symbol}
}

// ownerOf is whose process it is for who asks. Where that is not the
// controller's own user, the kernel does not look after the difference.
func (a *Actuator) ownerOf(pid int) (int, error) {
	if a.options.Asker == nil {
		return ownerOf(pid)
	}
	owner, err := procid.Owner(pid)
	return int(owner), err
}

// ownerOf is the effective user of a process. The owner of its files in /proc
// is root where the process cannot be dumped.
func ownerOf(pid int) (int, error) {
	status, err := procid.ReadFile(pid, "status", maxStatus)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if ids, ok := bytes.CutPrefix(line, []byte("Uid:")); ok {
			if fields := bytes.Fields(ids); len(fields) > 1 {
				return strconv.Atoi(string(fields[1]))
			}
		}
	}
	return 0, fmt.Errorf("status of process %d without Uid", pid)
}
