// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// callsAtOnce and callsEvery bound the calls of one user that have lines of their own,
	// and refusedCallsAtOnce and refusedCallsEvery those that were refused. The rest is
	// counted: no user must make old files be deleted, in which others' lines are.
	callsAtOnce        = 4000
	callsEvery         = 5 * time.Second
	refusedCallsAtOnce = 100
	refusedCallsEvery  = time.Minute
	// maxCall bounds the message of such a call, bytes.
	maxCall = 1 << 10
	// tallyPeriod is how often it is told at most how many calls have no line.
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
	l.calls.pass(l)
	if !l.calls.listed(c) {
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
		l.write(asked)
		return
	}
	answered.Call = l.write(asked)
	l.write(answered)
}

// tally is what is counted together.
type tally struct {
	event Event
	uid   uint32
	what  string
}

// calls bound the lines about calls of users. Log.mu guards them.
type calls struct {
	asked, refused *quota.Rate[uint32] // of users
	since          time.Time           // when more was last told
	more           map[tally]Entry     // that have no line, with their count
}

// pass tells of those without a line when it is time. The lock is held.
func (c *calls) pass(l *Log) {
	if time.Since(c.since) >= tallyPeriod {
		c.flush(l)
		c.since = time.Now()
	}
}

func newCalls() calls {
	return calls{
		asked: quota.NewRate[uint32](callsAtOnce, callsEvery), refused: quota.NewRate[uint32](refusedCallsAtOnce, refusedCallsEvery),
		since: time.Now(), more: make(map[tally]Entry),
	}
}

// listed says whether a call has a line of its own, and counts it otherwise.
func (c *calls) listed(call Call) bool {
	rate, event := c.asked, Asked
	if call.Refused {
		rate, event = c.refused, Refused
	}
	if call.UID == 0 || rate.Take(call.UID) {
		return true
	}
	key := tally{event, call.UID, call.What}
	e := c.more[key]
	e.Event, e.Who, e.What, e.Count = event, Of(call.Who), call.What, e.Count+1
	c.more[key] = e
	return false
}

// flush writes how many had no line.
func (c *calls) flush(l *Log) {
	for key, e := range c.more {
		e.Error = "more calls for user " + strconv.FormatUint(uint64(key.uid), 10) + " like those before"
		if l.write(e) != 0 {
			delete(c.more, key)
		}
	}
}
