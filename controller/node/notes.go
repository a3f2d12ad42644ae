// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxMismatches and maxTroubles bound what is announced of each; the newest
	// stay, each user's and the node's.
	maxMismatches = 64
	maxTroubles   = 16
	// maxTrouble bounds the text of a trouble, bytes: it may quote what a user wrote.
	maxTrouble = 1 << 10
)

// notes are what the node has to tell that is no session. Its methods may be
// called from any goroutine.
type notes struct {
	changed func()

	mu         sync.Mutex // guards what follows; a leaf lock
	mismatches []*attunev1.Mismatch
	troubles   []trouble
}

// trouble is what went wrong and was survived.
type trouble struct {
	uid        uint32 // of whom it concerns; pki.NoUID: the node
	time, text string
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

// trouble notes what went wrong with the node and was survived.
func (n *notes) trouble(text string) { n.troubleOf(pki.NoUID, text) }

// troubleOf notes what went wrong with what a user has here and was survived.
func (n *notes) troubleOf(uid uint32, text string) {
	if len(text) > maxTrouble {
		text = strings.ToValidUTF8(text[:maxTrouble], "") + "…"
	}
	n.mu.Lock()
	n.troubles = append(n.troubles, trouble{uid, time.Now().UTC().Format(time.RFC3339), text})
	if len(n.troubles) > maxTroubles {
		i := quota.Surplus(n.troubles, func(t trouble) uint32 { return t.uid })
		n.troubles = slices.Delete(n.troubles, i, i+1)
	}
	n.mu.Unlock()
	n.changed()
}

// over forgets the troubles whose text begins so: they are no more.
func (n *notes) over(begin string) {
	n.mu.Lock()
	n.troubles = slices.DeleteFunc(n.troubles, func(t trouble) bool { return strings.HasPrefix(t.text, begin) })
	n.mu.Unlock()
	n.changed()
}

// current returns what is noted, troubles with their times, and of mismatches those whose
// process runs.
func (n *notes) current() (mismatches []*attunev1.Mismatch, troubles []*attunev1.Trouble) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mismatches = slices.DeleteFunc(n.mismatches, func(m *attunev1.Mismatch) bool { return !alive(m.GetPid()) })
	for _, t := range n.troubles {
		told := &attunev1.Trouble{Text: t.time + " " + t.text}
		if t.uid != pki.NoUID {
			told.Uid = &t.uid
		}
		troubles = append(troubles, told)
	}
	return slices.Clone(n.mismatches), troubles
}

// alive says whether a noted process is still there.
func alive(pid int32) bool {
	stat, err := procid.ReadStat(int(pid))
	return err == nil && !stat.Zombie()
}
