// SPDX-License-Identifier: Apache-2.0

package unixmsg

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// mostRefused is how many connections share a thread at most. Each keeps a descriptor until then.
const mostRefused = 32

// Refused closes connections of strangers, whatever they still hold. Those that may hold
// descriptors are closed together, by Close at the latest: each by itself would have a thread and
// a copy of all descriptors made ([CloseAll]). Their peers see the end at once. A Refused is
// one goroutine's; its zero value has no connections.
type Refused struct {
	closing []func() error
}

// Add closes a connection that nothing was read from, or leaves that to Close.
func (r *Refused) Add(conn *net.UnixConn) {
	r.add(mayHoldConn(conn), conn.Close)
}

// AddDescriptor is Add for the descriptor of a connection.
func (r *Refused) AddDescriptor(fd int) {
	r.add(mayHold(fd), func() error { return unix.Close(fd) })
}

func (r *Refused) add(holds bool, end func() error) {
	if !holds {
		_ = end() // nothing was written that has to arrive
		return
	}
	if r.closing = append(r.closing, end); len(r.closing) == mostRefused {
		_ = r.Close() // Close says it again, if it is so again
	}
}

// Waiting says whether there is something to close.
func (r *Refused) Waiting() bool { return len(r.closing) > 0 }

// Close closes the connections that are left. More may be added.
func (r *Refused) Close() error {
	if len(r.closing) == 0 {
		return nil
	}
	all := r.closing
	r.closing = nil
	return withoutLinger(func() (err error) {
		for _, end := range all {
			err = errors.Join(err, end())
		}
		return err
	})
}
