// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxMismatches and maxTroubles bound what is announced of each; the newest
	// stay, of mismatches each user's.
	maxMismatches = 64
	maxTroubles   = 16
)

// notes are what the node has to tell that is no session. Its methods may be
// called from any goroutine.
type notes struct {
	changed func()

	mu         sync.Mutex // guards what follows; a leaf lock
	mismatches []*attunev1.Mismatch
	troubles   []string
}

// mismatch notes a process that is left alone.
func (n *notes) mismatch(m *attunev1.Mismatch) {
	n.mu.Lock()
	n.mismatches = append(n.mismatches, m)
	if len(n.mismatches) > maxMismatches {
		i := quota.Surplus(n.mismatches, (*attunev1.Mismatch).GetUid)
		n.mismatches = slices.Delete(n.mismatches, i, i+1)
	}
	n.mu.Unlock()
	n.changed()
}

// trouble notes what went wrong and was survived, with its time.
func (n *notes) trouble(text string) {
	n.mu.Lock()
	n.troubles = append(n.troubles, time.Now().UTC().Format(time.RFC3339)+" "+text)
	n.troubles = slices.Delete(n.troubles, 0, max(0, len(n.troubles)-maxTroubles))
	n.mu.Unlock()
	n.changed()
}

// over forgets the troubles whose text begins so: they are no more.
func (n *notes) over(begin string) {
	n.mu.Lock()
	n.troubles = slices.DeleteFunc(n.troubles, func(t string) bool {
		_, text, _ := strings.Cut(t, " ")
		return strings.HasPrefix(text, begin)
	})
	n.mu.Unlock()
	n.changed()
}

// current returns what is noted, of mismatches those whose process runs.
func (n *notes) current() (mismatches []*attunev1.Mismatch, troubles []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mismatches = slices.DeleteFunc(n.mismatches, func(m *attunev1.Mismatch) bool { return !alive(m.GetPid()) })
	return slices.Clone(n.mismatches), slices.Clone(n.troubles)
}

// alive says whether a noted process is still there.
func alive(pid int32) bool {
	stat, err := procid.ReadStat(int(pid))
	return err == nil && !stat.Zombie()
}
