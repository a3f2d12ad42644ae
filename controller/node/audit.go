// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// auditPatience bounds how long an answer at the local socket waits for its line
// to be on disk: a job is waiting for it.
const auditPatience = 50 * time.Millisecond

// asked notes what the Analyzer wants done to processes, on behalf of whoever
// has registered the application.
func (s *session) asked(request *attunev1.ManageResponse) { s.note(audit.Received, request) }

// answered notes what became of a change.
func (s *session) answered(result *attunev1.ActionResult) { s.note(audit.Sent, result) }

func (s *session) note(event audit.Event, message proto.Message) {
	log := s.node.config.Audit
	if log == nil {
		return
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		s.log.Warn("audit log", "error", err)
	}
	log.Write(audit.Entry{
		Event: event, Who: audit.Of(s.order.registration.GetOwner()),
		What:    fmt.Sprintf("session %s, job %s, user %d", s.key.registration, s.key.job, s.key.uid),
		Message: text,
	})
}

// noteTask notes a task that is handed over, and returns what notes the answer.
func (n *Node) noteTask(by uint32, task Task) (answered func(error)) {
	log := n.config.Audit
	if log == nil {
		return func(error) {}
	}
	text, err := json.Marshal(task)
	if err != nil {
		n.log.Warn("audit log", "error", err)
	}
	const what = "POST /v1/task"
	call := log.Write(audit.Entry{Event: audit.Asked, Who: audit.Of(authn.OfUser(by)), What: what, Message: text})
	return func(err error) {
		entry := audit.Entry{Event: audit.Answered, Call: call, What: what, Code: "OK"}
		if err != nil {
			entry.Code, entry.Error = fmt.Sprint(statusOf(err)), err.Error()
		}
		log.Write(entry)
		ctx, cancel := context.WithTimeout(context.Background(), auditPatience)
		defer cancel()
		_ = log.Sync(ctx) // the log itself tells of trouble
	}
}
