// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// callsAtOnce and callsEvery bound how many of one user's calls have lines of their own:
	// so many in a row, and one more each so often. refusedCallsAtOnce and refusedCallsEvery
	// bound the lines of calls that were refused. The rest is counted: no user must make old
	// files be deleted, in which others' lines are.
	callsAtOnce        = 4000
	callsEvery         = 5 * time.Second
	refusedCallsAtOnce = 100
	refusedCallsEvery  = time.Minute
	// connectionsAtOnce and connectionsEvery bound the lines of connections that were refused,
	// of all together: whoever is nobody must not fill the disk.
	connectionsAtOnce = 20
	connectionsEvery  = 3 * time.Second
	// maxCall bounds the message of a Call in a line, bytes: of a longer message the line has
	// the length only. Of another Entry, a message of n KiB counts as n calls.
	maxCall = 1 << 10
	// tallyPeriod is how often it is told at most how many calls and connections have no line.
	tallyPeriod = time.Minute
)

// Call is a call for a user, who decides how often it is made and what it says.
type Call struct {
	// Who asked, for the user UID: root asks for all. Calls for root always have lines.
	Who *attunev1.Principal
	UID uint32
	// What was asked for, and when.
	What  string
	Began time.Time
	// Message is what was sent.
	Message json.RawMessage
	// Code and Err are how it went; Refused: it was, and nothing was done.
	Code    string
	Err     error
	Refused bool
}

// WriteCall notes a call that is over.
func (l *Log) WriteCall(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	asked := Entry{Event: Asked, Time: c.Began, Who: Of(c.Who), What: c.What, Message: c.Message}
	if len(c.Message) > maxCall {
		asked.Bytes, asked.Message = len(c.Message), nil
	}
	answered := Entry{Event: Answered, What: c.What, Code: c.Code}
	if c.Err != nil {
		answered.Error = c.Err.Error()
	}
	if c.Refused {
		asked.Event, asked.Code, asked.Error = Refused, answered.Code, answered.Error
	}
	l.calls.pass(l)
	if !l.calls.listed(user{uid: c.UID}, asked) {
		return
	}
	if number := l.write(asked); !c.Refused {
		answered.Call = number
		l.write(answered)
	}
}

// writeOf is Write of what a user has asked for or sent; listed is false, and it is only
// counted, if that was too much.
func (l *Log) writeOf(u user, e Entry) (number uint64, listed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, false
	}
	l.calls.pass(l)
	if !l.calls.listed(u, e) {
		return 0, false
	}
	return l.write(e), true
}

// Refused notes that a connection was not made; it is for
// [authn.Options].Refused.
func (l *Log) Refused(peer net.Addr, err error) {
	l.writeOf(user{stranger: true}, Entry{Event: Refused, From: address(peer), Error: err.Error()})
}

// address names where somebody is; those who connect to a Unix socket have no
// address.
func address(peer net.Addr) string {
	switch {
	case peer == nil:
		return ""
	case peer.Network() == "unix" && strings.Trim(peer.String(), "@") == "":
		return "unix"
	}
	return peer.String()
}

// user is one whose lines are bounded; the zero value stands for root and for all others
// whose lines are not.
type user struct {
	uid  uint32
	name string // of a certificate without an id
	// stranger stands for all whose connections are refused.
	stranger bool
}

// userOf is whose lines those of a principal are. Nodes ask on behalf of all their users,
// whom they bound themselves.
func userOf(p *attunev1.Principal) user {
	switch {
	case p.GetRole() != attunev1.Role_ROLE_USER:
		return user{}
	case p.GetUid() == pki.NoUID:
		return user{uid: pki.NoUID, name: p.GetName()}
	}
	return user{uid: p.GetUid()}
}

func (u user) String() string {
	if u.name != "" {
		return u.name
	}
	return strconv.FormatUint(uint64(u.uid), 10)
}

// tally is what is counted together.
type tally struct {
	event Event
	user  user
	what  string
}

// calls bound the lines about calls of users, and about refused connections. Log.mu guards
// them.
type calls struct {
	asked, refused, connections *quota.Rate[user]

	since time.Time       // when more was last told
	more  map[tally]Entry // that have no line, with their count
}

// pass tells of those without a line when it is time. The lock is held.
func (c *calls) pass(l *Log) {
	if time.Since(c.since) >= tallyPeriod {
		c.flush(l.tryWrite)
		c.since = time.Now()
	}
}

func newCalls() calls {
	return calls{
		asked: quota.NewRate[user](callsAtOnce, callsEvery), refused: quota.NewRate[user](refusedCallsAtOnce, refusedCallsEvery),
		connections: quota.NewRate[user](connectionsAtOnce, connectionsEvery),
		since:       time.Now(), more: make(map[tally]Entry),
	}
}

// listed says whether something of a user's has a line of its own, and counts it
// otherwise.
func (c *calls) listed(u user, e Entry) bool {
	rate := c.asked
	switch {
	case u.stranger:
		rate = c.connections
	case e.Event == Refused:
		rate = c.refused
	}
	if u == (user{}) || rate.TakeMany(u, max(1, (len(e.Message)+maxCall-1)/maxCall)) {
		return true
	}
	key := tally{e.Event, u, e.What}
	more := c.more[key]
	more.Event, more.Who, more.What, more.Count = e.Event, e.Who, e.What, more.Count+1
	c.more[key] = more
	return false
}

// flush writes how many had no line, and keeps what found no place.
func (c *calls) flush(write func(Entry) uint64) {
	for key, e := range c.more {
		e.Error = "more calls for user " + key.user.String() + " like those before"
		if key.user.stranger {
			e.Error = "more connections like those before"
		}
		if write(e) != 0 {
			delete(c.more, key)
		}
	}
}
