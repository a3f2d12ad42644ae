// SPDX-License-Identifier: Apache-2.0

package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// kind says what a message is about.
type kind string

// What attuned asks of the process of a session, and tells it.
const (
	begin     kind = "begin"     // beginning; answered when the controller runs
	follow    kind = "follow"    // procid.Identity, with a pidfd; answered with beating
	processes kind = "processes" // page; answered with page
	changes   kind = "changes"   // page; answered with page
	keep      kind = "keep"      // keeping; answered with keeping
	stop      kind = "stop"      // time.Duration; answered when everything was given back
	hold      kind = "hold"      // holding; answered with the number of changes that stay
	restore   kind = "restore"   // restoring; answered with [Restored]s
	ping      kind = "ping"      // pinging; answered with beating
	happened  kind = "happened"  // event; not answered
	moved     kind = "moved"     // the Analyzer; not answered
)

// What the process of a session asks of attuned, and tells it.
const (
	add      kind = "add"      // a pid whose events it wants
	remove   kind = "remove"   // a pid whose events it does not want any more
	drain    kind = "drain"    // answered when all events were told
	find     kind = "find"     // answered with the Analyzer's address
	dial     kind = "dial"     // answered with a connection to it
	granted  kind = "granted"  // the path of a program; answered with granting
	rules    kind = "rules"    // answered with policy.Text
	answered kind = "answered" // an attunev1.ActionResult; not answered
	over     kind = "over"     // ending; not answered
	logged   kind = "logged"   // line; not answered
)

// message is one, of either side.
type message struct {
	Kind kind `json:"kind"`
	// Call is the number of a call, which its answer has, too. 0: nobody waits.
	Call uint64 `json:"call,omitempty"`
	// Answer says that this is one; with Error the call was in vain, with Gone
	// because a process has ended, with Later because it could not be read in time.
	Answer bool   `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
	Gone   bool   `json:"gone,omitempty"`
	Later  bool   `json:"later,omitempty"`

	Body json.RawMessage `json:"body,omitempty"`
}

// beginning is what a controller is made from.
type beginning struct {
	ID, GatePath, LibraryPath, StateDir string
	LateLibrary, UseBPF, TakesOver      bool
	LookInterval                        time.Duration
	Budget                              float64

	Registration, Mode string
	Job, User, Owner   []byte // messages of the protocol
}

// pinging goes to the process of a session once in a while.
type pinging struct {
	Lost  uint64 // process events
	Debug bool   // what is for debugging is logged, too
}

// beating is its answer.
type beating struct{ Living int }

// page is a part of a list: from the first that is asked for, with the number of
// those that there are.
type page struct {
	From, Of int
	Items    [][]byte `json:",omitempty"`
}

// keeping names changes that are to stay, and in the answer what they are called from
// then on.
type keeping struct {
	IDs []string
	// Error says what was in vain; others may stay all the same.
	Error string
}

// holding says until when since boot changes stay that are proven good, and how long
// the rest may take.
type holding struct{ Until, Patience time.Duration }

// restoring names the directory of journals, with what is held for the next controller
// or without.
type restoring struct {
	Dir  string
	Held bool
}

// Restored is what became of one change that a dead controller had left behind; without a
// change, why journals could not be read or written.
type Restored struct {
	Change, Knob string
	PID          int
	Error        string // empty: the old values are back, or the process has ended
}

// ending is the Analyzer's word that the session is over.
type ending struct {
	Keep   []string
	Reason string
}

// granting is what may be done at present to processes that execute a program: why nothing,
// and why no change, see [controller.Config].
type granting struct{ Denied, Untouched string }

// line is one of a log.
type line struct {
	Level   int
	Message string
	Values  []value
}

// value is a named value of a line.
type value struct{ Name, Value string }

// event is a track.Event, whose texts need not be UTF-8.
type event struct {
	track.Event
	Command []byte
	Program *program `json:",omitempty"`
}

type program struct {
	Device, Inode uint64
	StartedAs     []byte
	Arguments     []byte
}

func eventOf(e track.Event) event {
	told := event{Event: e, Command: []byte(e.Command)}
	told.Event.Command, told.Event.Program = "", nil
	if p := e.Program; p != nil {
		told.Program = &program{p.Device, p.Inode, []byte(p.StartedAs), p.Arguments}
	}
	return told
}

func (e event) event() track.Event {
	told := e.Event
	told.Command = string(e.Command)
	if p := e.Program; p != nil {
		told.Program = &procevent.Program{Device: p.Device, Inode: p.Inode, StartedAs: string(p.StartedAs), Arguments: p.Arguments}
	}
	return told
}

// decode reads the body of a message.
func decode[T any](m message) (body T, err error) {
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return body, fmt.Errorf("message %q: %w", m.Kind, err)
	}
	return body, nil
}

// encoded is a message of the protocol as a body carries it, with texts that are UTF-8;
// nil stays nil.
func encoded(m proto.Message) ([]byte, error) {
	if !m.ProtoReflect().IsValid() {
		return nil, nil
	}
	return attunev1.Encode(m, proto.MarshalOptions{AllowPartial: true}.Marshal)
}

// sameProcess says whether an identity is that of a process with a start, which may be
// unknown: 0.
func sameProcess(identity procid.Identity, pid int, start uint64) bool {
	return identity.PID == pid && (start == 0 || identity.StartTicks == start)
}

// beginningOf is what a process needs to know of a configuration.
func beginningOf(c controller.Config) (b beginning, err error) {
	b = beginning{
		ID: c.ID, GatePath: c.GatePath, LibraryPath: c.LibraryPath, StateDir: c.StateDir,
		LateLibrary: c.LateLibrary, UseBPF: c.UseBPF, TakesOver: c.TakesOver, LookInterval: c.LookInterval, Budget: c.Budget,
		Registration: c.Session.Registration, Mode: c.Session.Mode,
	}
	var errs [3]error
	b.Job, errs[0] = encoded(c.Session.Job)
	b.User, errs[1] = encoded(c.Session.User)
	b.Owner, errs[2] = encoded(c.Session.Owner)
	return b, errors.Join(errs[:]...)
}
