// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"sync"
)

// maxUnderway bounds the losses that are kept of one connection, some 70 kB. An Analyzer
// that keeps up has some hundred messages to acknowledge at most.
const maxUnderway = 1024

// underway knows what a connection loses if it breaks now: what was sent and is not
// acknowledged. It keeps the losses, not the messages. The zero value is ready; safe for
// use by several goroutines.
type underway struct {
	mu    sync.Mutex // guards what follows; a leaf lock
	sent  uint64     // messages
	taken uint64     // of them, as the Analyzer says
	mute  bool       // it does not say
	list  []sending  // of messages with a loss, the oldest at first
}

// sending is the loss of the messages up to one by number that the entry before it in the
// list does not have: one message, or several for which there was no room.
type sending struct {
	last uint64
	loss Loss
}

// send notes a message that was sent.
func (u *underway) send(loss Loss) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent++
	switch {
	case u.mute, u.sent <= u.taken, loss == Loss{}:
	case len(u.list) == maxUnderway:
		youngest := &u.list[maxUnderway-1]
		youngest.last, youngest.loss = u.sent, youngest.loss.plus(loss)
	default:
		u.list = append(u.list, sending{u.sent, loss})
	}
}

// acknowledge notes how many messages the Analyzer has taken, the first ones.
func (u *underway) acknowledge(messages uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken = max(u.taken, messages)
	u.list = slices.DeleteFunc(u.list, func(s sending) bool { return s.last <= u.taken })
}

// trust notes that the Analyzer does not say what it has taken: what was sent counts as
// delivered.
func (u *underway) trust() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mute, u.list = true, nil
}

// losses returns what is lost if nothing more is acknowledged.
func (u *underway) losses() (all []Loss) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.list {
		all = append(all, s.loss)
	}
	return all
}
