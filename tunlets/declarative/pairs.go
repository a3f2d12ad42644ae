// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// maxOpen bounds the threads in which something has begun and not ended.
const maxOpen = 4096

// endSuffix is behind the id of the point that ends what another one begins.
const endSuffix = ".until"

// pairs turns the hits of two points in the same thread, one after the other,
// into the time in between, for each of the points with `until`.
type pairs map[string]*pair

type pair struct {
	began     map[int32]int64 // by thread, when; nanoseconds
	hits, sum float64         // of what has ended since the last drain
	// unknown: not every hit is delivered, so that no time is right.
	unknown bool
}

// newPairs are those of a definition.
func newPairs(points []point) pairs {
	p := pairs{}
	for _, at := range points {
		if at.until != nil {
			p[at.id] = &pair{began: map[int32]int64{}}
		}
	}
	return p
}

// hit takes a hit of the point, or of the one that ends it.
func (p *pair) hit(end bool, r sdk.Record) {
	switch began, open := p.began[r.Thread]; {
	case r.Flags&sdk.RecordSampled != 0:
		p.unknown = true
	case !end && len(p.began) < maxOpen:
		p.began[r.Thread] = r.Monotonic
	case end && open:
		delete(p.began, r.Thread)
		p.hits++
		p.sum += float64(max(0, r.Monotonic-began))
	}
}

// lose forgets what has begun: hits were lost, and the next end may be of
// another beginning.
func (p pairs) lose() {
	for _, pair := range p {
		clear(pair.began)
	}
}

// drain returns what has ended since the last time, of those that are known.
func (p pairs) drain(seconds float64) counts {
	out := counts{}
	for _, id := range slices.Sorted(maps.Keys(p)) {
		pair := p[id]
		if !pair.unknown {
			out[id] = count{seconds, pair.hits, pair.sum}
		}
		pair.hits, pair.sum = 0, 0
	}
	return out
}
