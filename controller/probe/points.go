// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"sync"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// wish is a point that is to be placed in a process, or taken out of it.
type wish struct {
	index uint16
	spec  *attunev1.MeasurePoint
	gone  bool
	back  bool   // by whoever had the point recalled
	done  func() // called when it is fulfilled, or cannot be; may be nil
}

// points are the points that are wanted, in whichever process. Its methods may be
// called from any goroutine, with the lock of a process held as well.
type points struct {
	mu    sync.Mutex // guards known; a leaf lock
	known map[uint16]wantedPoint
}

type wantedPoint struct {
	spec  *attunev1.MeasurePoint
	asked time.Time // when it was asked for
}

func (p *points) add(index uint16, spec *attunev1.MeasurePoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[index] = wantedPoint{spec, time.Now()}
}

// remove returns the point, nil if there was none.
func (p *points) remove(index uint16) *attunev1.MeasurePoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec := p.known[index].spec
	delete(p.known, index)
	return spec
}

func (p *points) removeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}

// at returns the point of an index, nil if there is none, and when it was asked for.
func (p *points) at(index uint16) (spec *attunev1.MeasurePoint, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known[index]
	return known.spec, known.asked
}

// has says whether a point is still wanted.
func (p *points) has(index uint16, spec *attunev1.MeasurePoint) bool {
	known, _ := p.at(index)
	return known == spec
}

// meantFor lists the points of a process.
func (p *points) meantFor(handle uint64) (wanted []wish) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for index, known := range p.known {
		if wants(known.spec, handle) {
			wanted = append(wanted, wish{index: index, spec: known.spec})
		}
	}
	return wanted
}

// count counts the points for which is says yes.
func (p *points) count(is func(*attunev1.MeasurePoint) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.known {
		if is(known.spec) {
			n++
		}
	}
	return n
}

// wants says whether a point is meant for a process.
func wants(spec *attunev1.MeasurePoint, handle uint64) bool {
	return meantForAll(spec) || slices.Contains(spec.GetProcesses(), handle)
}

// meantForAll says whether a point is meant for every process, whichever comes.
func meantForAll(spec *attunev1.MeasurePoint) bool { return len(spec.GetProcesses()) == 0 }
