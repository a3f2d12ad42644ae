// SPDX-License-Identifier: Apache-2.0

package sdk

import "time"

// windowLimit bounds the samples that a Window holds, whatever its length: a
// controller that samples too fast must not make a tunlet grow.
const windowLimit = 256

// windowWhole are the newest samples of a Window, which thin leaves as they are.
const windowWhole = windowLimit / 4

// Window keeps the latest samples of one process, as the ground for rates.
// Not safe for use by several goroutines.
type Window struct {
	length  time.Duration
	samples []Sample // oldest first
}

// NewWindow makes a window that reaches back by at least the given time, as
// soon as there are samples that old.
func NewWindow(length time.Duration) *Window {
	return &Window{length: length}
}

// Add takes a sample, and forgets those that are not needed any more to cover
// the window's length. A sample that is not newer than the last is dropped. Of a window
// that is long for the pace of its samples, some older ones in between are left out.
// Details are not kept.
func (w *Window) Add(s Sample) {
	if n := len(w.samples); n > 0 && !s.At.After(w.samples[n-1].At) {
		return
	}
	drop := 0
	for drop+1 < len(w.samples) && s.At.Sub(w.samples[drop+1].At) >= w.length {
		drop++
	}
	if drop > 0 {
		w.samples = w.samples[:copy(w.samples, w.samples[drop:])]
	}
	if len(w.samples) >= windowLimit {
		w.thin()
	}
	s.Details = Details{}
	w.samples = append(w.samples, s)
}

// thin leaves out older samples that are close to one another, so that the window reaches
// back as far as before: rates need only its ends.
func (w *Window) thin() {
	const parts = windowLimit / 2 // with windowWhole, and the first, it is less than the limit
	newest := w.samples[len(w.samples)-windowWhole].At
	kept := w.samples[:1]
	for _, s := range w.samples[1:] {
		if !s.At.Before(newest) || s.At.Sub(kept[len(kept)-1].At) >= w.length/parts {
			kept = append(kept, s)
		}
	}
	w.samples = kept
}

// Reset forgets all samples, and gives their memory back: who resets a window has
// mostly nothing to look for until something happens, in thousands of processes.
func (w *Window) Reset() { w.samples = nil }

// Empty says that the window holds no sample.
func (w *Window) Empty() bool { return len(w.samples) == 0 }

// Last is the latest value of a signal, and whether there is one.
func (w *Window) Last(sig Signal) (float64, bool) {
	if len(w.samples) == 0 {
		return 0, false
	}
	return w.samples[len(w.samples)-1].Value(sig)
}

// Max is the greatest value of a gauge in the window, and whether there is one.
func (w *Window) Max(sig Signal) (greatest float64, ok bool) {
	for i := range w.samples {
		if v, has := w.samples[i].Value(sig); has && (!ok || v > greatest) {
			greatest, ok = v, true
		}
	}
	return greatest, ok
}

// Rise is by how much the greatest value of a gauge is greater in the newer half
// of the window than in the older one, per second, and whether there are values in
// both. Of a gauge that goes up and down quickly it tells more than the difference
// of two samples.
func (w *Window) Rise(sig Signal) (perSecond float64, ok bool) {
	span := w.Span()
	middle := span.from.At.Add(span.Duration() / 2)
	newer := 0
	for newer < len(w.samples) && w.samples[newer].At.Before(middle) {
		newer++
	}
	before, okBefore := (&Window{samples: w.samples[:newer]}).Max(sig)
	after, okAfter := (&Window{samples: w.samples[newer:]}).Max(sig)
	if !okBefore || !okAfter {
		return 0, false
	}
	return 2 * (after - before) / span.Seconds(), true
}

// Span is the whole window.
func (w *Window) Span() Span { return w.Since(time.Time{}) }

// Latest is the window's newest part that is at least d long, or all of it
// where there is less.
func (w *Window) Latest(d time.Duration) Span {
	n := len(w.samples)
	if n == 0 {
		return Span{}
	}
	from := n - 1
	for from > 0 && w.samples[n-1].At.Sub(w.samples[from].At) < d {
		from--
	}
	return Span{from: w.samples[from], to: w.samples[n-1]}
}

// Since is the part of the window that begins with the first sample at or
// after t.
func (w *Window) Since(t time.Time) Span {
	for i := range w.samples {
		if !w.samples[i].At.Before(t) {
			return Span{from: w.samples[i], to: w.samples[len(w.samples)-1]}
		}
	}
	return Span{}
}

// Span is the time between two samples of one process. The zero Span is empty.
type Span struct {
	from, to Sample
}

// SpanBetween makes a span of two samples of one process.
func SpanBetween(from, to Sample) Span { return Span{from, to} }

// Duration is its length.
func (s Span) Duration() time.Duration { return s.to.At.Sub(s.from.At) }

// Seconds is its length in seconds.
func (s Span) Seconds() float64 { return s.Duration().Seconds() }

// Delta is how much a signal changed, and whether it was read at both ends.
func (s Span) Delta(sig Signal) (float64, bool) {
	a, okA := s.from.Value(sig)
	b, okB := s.to.Value(sig)
	return b - a, okA && okB
}

// Rate is how much a counter rose per second. It is never negative: where a
// controller sums over threads, the end of a thread can make a counter fall.
// It reports false for an empty span and for a signal that was not read.
func (s Span) Rate(sig Signal) (perSecond float64, ok bool) {
	d, ok := s.Delta(sig)
	if !ok || s.Duration() <= 0 {
		return 0, false
	}
	return max(0, d) / s.Seconds(), true
}
