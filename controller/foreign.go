// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxStatus is more than a status file of /proc has.
const maxStatus = 64 << 10

// foreign is why a process of the session must be left alone: it has the rights
// of another user than the session's, by a set-user-id program, which the
// session's user must not come by. Nil without a session's user, whom the
// kernel then judges. An exec may change it at any time: it is asked anew each
// time.
func (c *Controller) foreign(t *target) error {
	user := c.config.Session.User
	if user == nil {
		return nil
	}
	status, err := procid.ReadFile(t.pid, "status", maxStatus)
	if err != nil {
		return err
	}
	if !onlyUser(status, user.GetUid()) {
		return fmt.Errorf("it runs with the rights of another user than %d", user.GetUid())
	}
	return nil
}

// onlyUser says whether all user ids in a status file are the given one.
func onlyUser(status []byte, uid uint32) bool {
	for line := range bytes.Lines(status) {
		ids, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		fields := bytes.Fields(ids)
		for _, field := range fields {
			if id, err := strconv.ParseUint(string(field), 10, 32); err != nil || id != uint64(uid) {
				return false
			}
		}
		return len(fields) > 0
	}
	return false
}

// whyNot is why none of the changes may be made whatever they are; nil: the
// policy decides.
func (c *Controller) whyNot(changes []*attunev1.Change) error {
	for _, change := range changes {
		if t := c.targets.get(change.GetProcess()); t != nil {
			if err := c.foreign(t); err != nil && t.Alive() {
				return fmt.Errorf("process %d: %w", t.pid, err)
			}
		}
	}
	return nil
}
