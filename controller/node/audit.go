// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/authn"
)

// auditPatience bounds how long an answer at the local socket waits for its line
// to be on disk: a job is waiting for it.
const auditPatience = 50 * time.Millisecond

// auditor notes who asks for what, and what is answered; where nothing is audited it
// does nothing. Its methods may be called from any goroutine.
type auditor struct {
	audit *audit.Log
	log   *slog.Logger
}

// noteSession notes what the Analyzer wants done to a session's processes, on behalf of
// whoever has registered the application, or what became of a change.
func (a auditor) noteSession(s *session, event audit.Event, message proto.Message) {
	if a.audit == nil {
		return
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		s.log.Warn("audit log", "error", err)
	}
	a.audit.Write(audit.Entry{
		Event: event, Who: audit.Of(s.order.registration.GetOwner()),
		What:    fmt.Sprintf("session %s, job %s, user %d", s.key.registration, s.key.job, s.key.uid),
		Message: text,
	})
}

// noteSwitch notes that Attune was switched.
func (a auditor) noteSwitch(what, reason string) {
	if a.audit == nil {
		return
	}
	text, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		a.log.Warn("audit log", "error", err)
	}
	a.audit.Write(audit.Entry{Event: audit.Switched, What: what, Message: text})
}

// noteTask notes a task that was handed over, and its answer.
func (a auditor) noteTask(by uint32, task Task, began time.Time, err error) {
	if a.audit == nil {
		return
	}
	call := audit.Call{
		Who: authn.OfUser(by), UID: cmp.Or(by, task.UID), What: "POST /v1/task", Began: began,
		Code: "OK", Err: err, Refused: errors.Is(err, errBadTask) || errors.Is(err, errDenied),
	}
	if err != nil {
		call.Code = strconv.Itoa(statusOf(err))
	}
	if call.Message, err = json.Marshal(task); err != nil {
		a.log.Warn("audit log", "error", err)
	}
	a.audit.WriteCall(call)
	ctx, cancel := context.WithTimeout(context.Background(), auditPatience)
	defer cancel()
	_ = a.audit.Sync(ctx) // the log itself tells of trouble
}
