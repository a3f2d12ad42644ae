// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
)

// tunletNames says which tunlets there are to all nodes that ask, at one moment perhaps:
// what it has found holds for a second. Its method may be called from any goroutine.
type tunletNames struct {
	dirs []string

	mu    sync.Mutex // guards what follows
	until time.Time
	names []string
}

// current returns the names of those that can be started.
func (n *tunletNames) current() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.until) {
		return n.names
	}
	n.names = nil
	for _, c := range tunlethost.Find(n.dirs, nil) {
		if c.Err == nil {
			n.names = append(n.names, c.Name)
		}
	}
	n.until = time.Now().Add(time.Second)
	return n.names
}
