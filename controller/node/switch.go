// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"

	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/offswitch"
)

// switchedOff says whether Attune is switched off here, and why.
func (n *Node) switchedOff() (why string, off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.off, n.off != ""
}

// watchSwitch follows the switch until ctx ends.
func (n *Node) watchSwitch(ctx context.Context) {
	_, was := n.switchedOff()
	offswitch.Watch(ctx, offswitch.Interval, was, n.config.Off, n.turn)
}

// lookAtSwitch is for the start: nobody is found before it is known.
func (n *Node) lookAtSwitch() {
	if reason, off := n.config.Off(); off {
		n.turn(reason, off)
	}
}

// turn switches the node. Off ends all sessions, which gives everything back, and
// nobody is taken. What runs until it is switched on again stays with what was
// decided about it when it was found: it is left alone.
func (n *Node) turn(reason string, off bool) {
	n.mu.Lock()
	n.off = ""
	if off {
		n.off = "attune is switched off on this node: " + reason
		for _, s := range n.sessions {
			select {
			case s.switched <- n.off:
			default: // it is ending for the same reason
			}
		}
	}
	n.mu.Unlock()
	n.noteSwitch(reason, off)
	n.touch()
}

// noteSwitch tells people.
func (n *Node) noteSwitch(reason string, off bool) {
	what := "on"
	if off {
		what = "off"
		n.notes.trouble("switched off: " + reason)
		n.log.Warn("switched off: all sessions end, and no process is touched", "reason", reason)
	} else {
		n.notes.trouble("switched on again")
		n.log.Info("switched on: processes are found again")
	}
	if n.config.Audit == nil {
		return
	}
	text, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		n.log.Warn("audit log", "error", err)
	}
	n.config.Audit.Write(audit.Entry{Event: audit.Switched, What: what, Message: text})
}
