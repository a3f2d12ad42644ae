// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Event is what a line tells of.
type Event string

const (
	// Started is the first line after each start of the service.
	Started Event = "started"
	// Ended is its last.
	Ended Event = "ended"
	// Asked is a request.
	Asked Event = "asked"
	// Answered is its answer.
	Answered Event = "answered"
	// Received is a message of a stream that was Asked for and is not Answered
	// yet.
	Received Event = "received"
	// Sent is such a message in the other direction.
	Sent Event = "sent"
	// Refused is a connection that was not made.
	Refused Event = "refused"
	// Decided is what a service did of its own, as by the rules of a session.
	Decided Event = "decided"
	// Switched says that Attune was switched off on the node, or on.
	Switched Event = "switched"
	// Lost says how many lines are missing.
	Lost Event = "lost"
	// Rotated says that the log goes on in a new file, and how the old one is
	// called.
	Rotated Event = "rotated"
	// Dropped says that an old file was deleted.
	Dropped Event = "dropped"
)

// Entry is one line. What is zero is left out.
type Entry struct {
	// Number of the line since the service started, from 1; set by the Log.
	Number uint64 `json:"n"`
	// Time is when it happened; zero: now.
	Time time.Time `json:"time"`
	// Event is what the line tells of.
	Event Event `json:"event"`
	// Call joins the lines of one call: it is the number of the first.
	Call uint64 `json:"call,omitempty"`
	// Who asked.
	Who *Who `json:"who,omitempty"`
	// From where: an address, or "pid N".
	From string `json:"from,omitempty"`
	// What was asked for: the name of the method or the path.
	What string `json:"what,omitempty"`
	// Message is what was sent or answered; null if it is too long.
	Message json.RawMessage `json:"message,omitempty"`
	// Bytes is the size of a message that is too long.
	Bytes int `json:"bytes,omitempty"`
	// Code is how it went: "OK" or a gRPC code's name.
	Code string `json:"code,omitempty"`
	// Error says why not.
	Error string `json:"error,omitempty"`
	// Count is how many the line stands for, of lines or connections.
	Count uint64 `json:"count,omitempty"`
}

// Who is a principal.
type Who struct {
	Name string `json:"name"`
	// UID is left out of those that have none.
	UID  *uint32 `json:"uid,omitempty"`
	Role string  `json:"role"`
}

// Of is how lines name a principal; nil for nil.
func Of(p *attunev1.Principal) *Who {
	if p == nil {
		return nil
	}
	who := &Who{Name: p.GetName(), Role: pki.RoleName(p.GetRole())}
	if uid := p.GetUid(); uid != pki.NoUID {
		who.UID = &uid
	}
	return who
}

const (
	// maxText bounds texts that others have written, bytes.
	maxText = 1 << 10
	// maxMessage bounds a message in a line, bytes.
	maxMessage = 16 << 10
)

// line is the entry as it is written. Texts of others are cut, since a line is
// kept whole in memory and on disk.
func (e Entry) line() ([]byte, error) {
	e.From, e.What, e.Error = cut(e.From), cut(e.What), cut(e.Error)
	if len(e.Message) > maxMessage {
		e.Bytes, e.Message = len(e.Message), nil
	}
	line, err := json.Marshal(e)
	return append(line, '\n'), err
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "…"
}
