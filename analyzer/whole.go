// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"maps"
	"time"
)

// whole makes the owner's objective of what the parts of an application achieve, each a
// process, or the processes of a node. Parts tell theirs in a pace of their own: that of the
// whole is known when all have told it. It belongs to the session's loop.
type whole[K comparable] struct {
	measured func(value float64, end time.Time)
	mean     bool          // of the parts, else their sum
	steady   bool          // parts tell all the time: one that tells again waits for no other
	lasting  time.Duration // how long a part counts after it was told
	parts    map[K]told
}

// told is what a part has told last.
type told struct {
	value     float64 // over the interval
	from, end time.Time
	fresh     bool // it is not in a value of the whole yet
	gone      bool // and is the last one
}

// take takes what parts have achieved in an interval; from: zero, since they told it last.
func (w *whole[K]) take(from, end time.Time, parts map[K]float64) {
	if w.parts == nil {
		w.parts = map[K]told{}
	}
	for k := range parts {
		if w.steady && w.parts[k].fresh {
			w.close()
			break
		}
	}
	for k, value := range parts {
		w.parts[k] = w.parts[k].and(value, from, end)
	}
	if !w.steady {
		w.dropSilent(end)
	}
	for _, p := range w.parts {
		if !p.fresh {
			return
		}
	}
	w.close()
}

// and adds what the part has told next to what is in no value of the whole yet, or of
// an interval that came apart.
func (t told) and(value float64, from, end time.Time) told {
	if from.IsZero() {
		from = t.end
	}
	if whole := end.Sub(t.from); !t.from.IsZero() && whole > 0 && (t.fresh || from.Equal(t.from)) {
		value = (t.value*float64(t.end.Sub(t.from)) + value*float64(end.Sub(from))) / float64(whole)
		from = t.from
	}
	return told{value: value, from: from, end: end, fresh: true}
}

// leave takes the end of a part. What it told last still counts, once.
func (w *whole[K]) leave(k K) {
	if p := w.parts[k]; p.fresh {
		p.gone = true
		w.parts[k] = p
	} else {
		delete(w.parts, k)
	}
}

// dropSilent drops parts that told theirs too long ago. What the others achieved meanwhile
// is not the whole.
func (w *whole[K]) dropSilent(now time.Time) {
	all := len(w.parts)
	maps.DeleteFunc(w.parts, func(_ K, p told) bool { return now.Sub(p.end) > w.lasting })
	if len(w.parts) < all {
		w.restart()
	}
}

// restart forgets what is in no value yet.
func (w *whole[K]) restart() {
	for k, p := range w.parts {
		p.fresh = false
		w.parts[k] = p
		if p.gone {
			delete(w.parts, k)
		}
	}
}

// close makes a value of the whole. What a part told too long ago is of one that has ended.
func (w *whole[K]) close() {
	var end time.Time
	for _, p := range w.parts {
		if p.end.After(end) {
			end = p.end
		}
	}
	maps.DeleteFunc(w.parts, func(_ K, p told) bool { return end.Sub(p.end) > w.lasting })
	if len(w.parts) == 0 {
		return
	}
	var sum float64
	for _, p := range w.parts {
		if p.gone && end.After(p.end) { // for the rest of the interval it achieved nothing
			p.value *= float64(p.end.Sub(p.from)) / float64(end.Sub(p.from))
		}
		sum += p.value
	}
	if w.mean {
		sum /= float64(len(w.parts))
	}
	w.restart()
	w.measured(sum, end)
}
