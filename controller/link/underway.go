// SPDX-License-Identifier: Apache-2.0

package link

import "sync"

// maxUnderway bounds the losses that are kept of one connection, some 70 kB. An Analyzer
// that keeps up has some hundred messages to acknowledge at most.
const maxUnderway = 1024

// underway knows what a connection loses if it breaks now: what was sent and is not
// acknowledged. It keeps the losses, not the messages. The zero value is ready; safe for
// use by several goroutines.
type underway struct {
	mu     sync.Mutex // guards what follows; a leaf lock
	sent   uint64     // messages
	taken  uint64     // of them, as the Analyzer says
	mute   bool       // it does not say
	ring   []sending  // of messages with a loss, the oldest at first
	first  int
	length int
}

// sending is the loss of the messages up to one by number that the entry before it in the
// ring does not have: one message, or several for which there was no room.
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
		return
	case u.length == maxUnderway:
		youngest := u.at(u.length - 1)
		youngest.last, youngest.loss = u.sent, youngest.loss.plus(loss)
		return
	case u.length == len(u.ring):
		u.grow()
	}
	u.length++
	*u.at(u.length - 1) = sending{u.sent, loss}
}

// acknowledge notes how many messages the Analyzer has taken, the first ones.
func (u *underway) acknowledge(messages uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken = max(u.taken, messages)
	for u.length > 0 && u.at(0).last <= u.taken {
		u.first, u.length = (u.first+1)%len(u.ring), u.length-1
	}
}

// trust notes that the Analyzer does not say what it has taken: what was sent counts as
// delivered.
func (u *underway) trust() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mute, u.ring, u.first, u.length = true, nil, 0, 0
}

// losses returns what is lost if nothing more is acknowledged.
func (u *underway) losses() (all []Loss) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for n := range u.length {
		all = append(all, u.at(n).loss)
	}
	return all
}

// at returns an entry by age. The caller holds mu.
func (u *underway) at(n int) *sending { return &u.ring[(u.first+n)%len(u.ring)] }

// grow makes room for as many entries again. The caller holds mu.
func (u *underway) grow() {
	ring := make([]sending, max(16, 2*len(u.ring)))
	for n := range u.length {
		ring[n] = *u.at(n)
	}
	u.ring, u.first = ring, 0
}
