// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"time"
)

// whole makes the owner's objective of what the parts of an application achieve, each a
// process, or the processes of a node. Parts tell theirs in a pace of their own: that of the
// whole is known when all have told it, or one tells it again. It belongs to the session's
// loop.
type whole[K comparable] struct {
	measured func(value float64, end time.Time)
	mean     bool          // of the parts, else their sum
	lasting  time.Duration // how long a part counts after it was told
	parts    map[K]told
}

// told is what a part has told last.
type told struct {
	value float64
	end   time.Time
	fresh bool // it is not in a value of the whole yet
}

// take takes what parts have achieved in an interval that ends at a time.
func (w *whole[K]) take(end time.Time, parts map[K]float64) {
	if w.parts == nil {
		w.parts = map[K]told{}
	}
	for k := range parts {
		if w.parts[k].fresh {
			w.close()
			break
		}
	}
	for k, value := range parts {
		w.parts[k] = told{value, end, true}
	}
	for _, p := range w.parts {
		if !p.fresh {
			return
		}
	}
	w.close()
}

// close makes a value of the whole. What a part told too long ago is of one that has ended.
func (w *whole[K]) close() {
	var end time.Time
	for _, p := range w.parts {
		if p.end.After(end) {
			end = p.end
		}
	}
	var sum float64
	for k, p := range w.parts {
		if end.Sub(p.end) > w.lasting {
			delete(w.parts, k)
			continue
		}
		sum += p.value
		p.fresh = false
		w.parts[k] = p
	}
	if len(w.parts) == 0 {
		return
	}
	if w.mean {
		sum /= float64(len(w.parts))
	}
	w.measured(sum, end)
}
