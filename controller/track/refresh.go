// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"slices"

	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// refresher looks at members for what becomes known, or changes, while an image runs.
type refresher struct {
	members *members
	images  *images
	hasher  *hasher
	readers *readers.Pool
	// usable is which CPUs the processes could be given.
	usable usableCPUs
}

// refresh reads what may have changed: the CPUs allowed and usable, and the
// objects if the address space has another size (or always, if forced).
func (r *refresher) refresh(m *member, force bool) {
	stat, err := procid.ReadStat(m.pid)
	if err != nil || stat.Leaderless() || !m.hasImage(stat) {
		return // ended or exec'd: that is told by others
	}
	r.members.setSession(m, stat.Session)
	objects := m.message.Objects
	if force || stat.VirtualBytes != m.virtual {
		if now, err := readObjectsOf().Ask(context.Background(), r.readers, m.message.Uid, m.pid); err == nil {
			objects, m.virtual = slices.Concat(now, m.linkedIn(r.readers)), stat.VirtualBytes
		}
	}
	cpus, usable := readCPUs(m.pid), r.usable.of(m.pid)
	if slices.Equal(objects, m.message.Objects) && cpus == m.message.CpusAllowed && usable == m.message.CpusUsable {
		r.hasher.request(m)
		return
	}
	r.images.change(m, func(p *attunev1.Process) { p.Objects, p.CpusAllowed, p.CpusUsable = objects, cpus, usable })
	r.hasher.request(m)
}

// digest takes what was computed of an executable. The next refresh asks again where that
// failed for a reason that passes.
func (r *refresher) digest(result digestResult) {
	m := r.members.byHandle[result.handle]
	switch {
	case m == nil:
		return
	case result.err != nil:
		m.digesting = !errors.Is(result.err, readers.ErrRefused) && !passing.Error(result.err)
		return
	}
	r.images.change(m, func(p *attunev1.Process) { p.ExecutableSha256 = result.sum })
}
