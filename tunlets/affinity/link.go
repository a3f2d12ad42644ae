// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// maxEnds bounds the ends of pipes and sockets that are remembered of a process.
const maxEnds = 1024

// ends are the pipes and sockets of a process by what their other end is known by.
type ends struct {
	has            map[string]bool // its own ends
	peers          map[string]bool // the other ends of them
	pipes, sockets bool            // were read
}

func newEnds() ends { return ends{has: map[string]bool{}, peers: map[string]bool{}} }

// known says that both kinds were read.
func (e ends) known() bool { return e.pipes && e.sockets }

// add remembers one end.
func (e ends) add(own, peer string) {
	if own == "" || peer == "" || len(e.has) >= maxEnds {
		return
	}
	e.has[own], e.peers[peer] = true, true
}

// read takes what was read of a process.
func (e *ends) read(d sdk.Details) {
	if d.Pipes != nil {
		e.pipes = true
		for _, p := range d.Pipes.Items {
			if p.Writes {
				e.add(pipeEnd(p.Inode, "w"), pipeEnd(p.Inode, "r"))
			} else {
				e.add(pipeEnd(p.Inode, "r"), pipeEnd(p.Inode, "w"))
			}
		}
	}
	if d.Sockets != nil {
		e.sockets = true
		for _, s := range d.Sockets.Items {
			if s.Kind == "unix" {
				e.add(socketEnd(s.Inode), s.Peer)
			} else {
				e.add(s.Local+">"+s.Peer, s.Peer+">"+s.Local)
			}
		}
	}
}

// linked says whether one process has an end of which the other one, which may be
// the same, has the other end.
func linked(a, b ends) bool {
	for peer := range a.peers {
		if b.has[peer] {
			return true
		}
	}
	return false
}

func pipeEnd(inode uint64, end string) string { return fmt.Sprintf("pipe:[%d]%s", inode, end) }

// socketEnd is what the peer of a Unix socket is told as.
func socketEnd(inode uint64) string { return fmt.Sprintf("socket:[%d]", inode) }
