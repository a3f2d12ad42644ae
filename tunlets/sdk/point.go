// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Place within a function.
type Place uint8

// The places.
const (
	// Entry is when the function is called. The zero Place means the same.
	Entry = Place(attunev1.Place_PLACE_ENTRY)
	// Exit is when it returns.
	Exit = Place(attunev1.Place_PLACE_EXIT)
	// Both pairs entry and exit; the value is the time between, nanoseconds.
	Both = Place(attunev1.Place_PLACE_BOTH)
)

// String is the place in a word: entry, exit or both.
func (p Place) String() string { return enumText(attunev1.Place(max(p, Entry)), "PLACE_") }

// Delivery of the hits of a measure point.
type Delivery uint8

// The deliveries.
const (
	// DeliverAggregate sums hits where they happen. The zero Delivery means the same.
	DeliverAggregate = Delivery(attunev1.Delivery_DELIVERY_AGGREGATE)
	// DeliverEvents delivers every hit as a record.
	DeliverEvents = Delivery(attunev1.Delivery_DELIVERY_EVENT)
	// DeliverSampled delivers one hit in Point.SampleEvery as a record.
	DeliverSampled = Delivery(attunev1.Delivery_DELIVERY_SAMPLED)
)

// String is the delivery in a word: aggregate, event or sampled.
func (d Delivery) String() string {
	return enumText(attunev1.Delivery(max(d, DeliverAggregate)), "DELIVERY_")
}

// StaticProbe names a static probe (USDT, <sys/sdt.h>) of a binary or library.
type StaticProbe struct {
	// Object is the base name pattern (path.Match) of the binary or library;
	// empty: any that has it.
	Object string
	// Provider and Name are those of the probe, or patterns. Hits of all of its
	// places count as one point.
	Provider, Name string
}

// Point asks for one place in the application to be watched. One of Hook,
// Symbols and Static is given.
type Point struct {
	// ID is the tunlet's name for the point. Another point by the id of one that is not
	// removed yet is not asked for; a remark says so.
	ID string
	// Hook names a hook of DMLib: malloc, calloc, realloc, memalign, aligned_alloc,
	// posix_memalign (the value is the bytes asked for), free (the address),
	// pthread_mutex_lock, _trylock, _timedlock, _clocklock (glibc 2.30), _unlock (the mutex'
	// address), read, write, pread, pwrite, readv, writev (the bytes moved, 0 on an error).
	Hook string
	// Object is the base name pattern (path.Match) of the binary or library
	// that defines Symbols; empty: whichever does.
	Object string
	// Symbols are function names or patterns (path.Match). Hits of all of
	// them count as one point.
	Symbols []string
	// Static is a static probe. Its arguments are what [Parameter] counts. It has
	// no exit, and only the kernel's probes serve it (root).
	Static StaticProbe
	// DynamicCallsOnly says that calls which go through dynamic linking are
	// enough. That allows a mechanism of a few nanoseconds per hit.
	DynamicCallsOnly bool
	// OneObject says of a point without Object that one object is meant: the program
	// if it has such a function, else the only library that has one.
	OneObject bool
	// Place within the function; zero: Entry.
	Place Place
	// Parameter is the position of the parameter to take as the value. Hooks
	// have a value of their own.
	Parameter uint32
	// MinValue and MaxValue are the predicate; MaxValue 0: no upper bound.
	MinValue, MaxValue uint64
	// Captures are further values to take at each hit, at most eight; records
	// carry them, see [Records.Captured].
	Captures []Capture
	// Where must all hold for a hit to count, besides MinValue and MaxValue.
	Where []Condition
	// Value names the capture that is summed up, and that stands in records, in
	// place of the point's own value; empty: none.
	Value string
	// Key names the capture by which aggregates are kept apart; empty: none.
	Key string
	// MaxKeys is how many keys are kept apart, at most 1024; 0: 256.
	MaxKeys uint32
	// Delivery of the hits; zero: DeliverAggregate.
	Delivery Delivery
	// SampleEvery is for DeliverSampled; rounded up to a power of two.
	SampleEvery uint32
	// CoarseTime allows a record to have the time of one of the 15 hits before it
	// in the same tick of the kernel's clock (1 to 10 ms): the kernel's probes cost
	// a tenth less then. For records only.
	CoarseTime bool
	// Processes to watch; empty: all of the session, also later ones. With the last of them the
	// point is given back.
	Processes []Handle
}

// PointChange tells what became of a measure point in one process.
type PointChange struct {
	// Point is the id that the tunlet gave.
	Point string
	// Process it is about.
	Process Handle
	// Placed says that hits are being delivered; otherwise the point was
	// refused (Reason says why), is off or was taken away.
	Placed bool
	// Off says that the overhead budget of the process leaves nothing of the
	// point for the time being: hits are neither counted nor delivered. How
	// many there are is unknown; see [Aggregates.Unknown].
	Off bool
	// Removed says that it was taken away.
	Removed bool
	// Mechanism that serves it: hook, got, patch, uprobe_multi, uprobe.
	Mechanism string
	// Reason why it was refused or is off, or why nothing cheaper could be used.
	Reason string
	// Symbols found.
	Symbols []string
	// CostNanos is the cost per hit in nanoseconds; CostMeasured says that it was
	// measured on the machine of the process, else it is that of another one.
	CostNanos    float64
	CostMeasured bool
	// Late is for how long the process ran while the point was asked for and not
	// in place: hits in that time are not seen, and nobody knows how many there
	// were.
	Late time.Duration
}

// Check reports what is wrong with a point itself, whatever program it is for.
func (p Point) Check() error {
	targets := 0
	for _, given := range []bool{p.Hook != "", len(p.Symbols) > 0, p.Static != StaticProbe{}} {
		if given {
			targets++
		}
	}
	switch {
	case p.ID == "":
		return errors.New("it has no id")
	case targets != 1:
		return fmt.Errorf("it has %d targets; want one of Hook, Symbols and Static", targets)
	case p.MaxValue > 0 && p.MaxValue < p.MinValue:
		return fmt.Errorf("no value is at least %d and at most %d", p.MinValue, p.MaxValue)
	}
	names := map[string]bool{"": true}
	for _, c := range p.Captures {
		names[c.pb.GetName()] = true
	}
	for _, w := range p.Where {
		if !names[w.Capture] {
			return fmt.Errorf("a condition is about capture %q, which it does not have", w.Capture)
		}
	}
	for _, name := range []string{p.Value, p.Key} {
		if !names[name] {
			return fmt.Errorf("it does not have the capture %q", name)
		}
	}
	return nil
}

func (p Point) proto() *attunev1.MeasurePoint {
	out := &attunev1.MeasurePoint{
		Id: p.ID, Place: attunev1.Place(max(p.Place, Entry)), Parameter: p.Parameter,
		MinValue: p.MinValue, MaxValue: p.MaxValue,
		Delivery:    attunev1.Delivery(max(p.Delivery, DeliverAggregate)),
		SampleEvery: p.SampleEvery, CoarseTime: p.CoarseTime,
	}
	switch {
	case p.Hook != "":
		out.Target = &attunev1.MeasurePoint_Hook{Hook: p.Hook}
	case p.Static != StaticProbe{}:
		out.Target = &attunev1.MeasurePoint_Usdt{Usdt: &attunev1.UsdtTarget{
			Object: p.Static.Object, Provider: p.Static.Provider, Name: p.Static.Name,
		}}
	default:
		out.Target = &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{
			Object: p.Object, Symbols: p.Symbols, DynamicCallsOnly: p.DynamicCallsOnly,
			OneObject: p.OneObject,
		}}
	}
	p.addCaptures(out)
	for _, h := range p.Processes {
		out.Processes = append(out.Processes, uint64(h))
	}
	return out
}

// PointFrom is the point that a message describes.
func PointFrom(m *attunev1.MeasurePoint) Point {
	p := Point{
		ID: m.GetId(), Hook: m.GetHook(), Place: Place(m.GetPlace()), Parameter: m.GetParameter(),
		MinValue: m.GetMinValue(), MaxValue: m.GetMaxValue(),
		Delivery: Delivery(m.GetDelivery()), SampleEvery: m.GetSampleEvery(), CoarseTime: m.GetCoarseTime(),
		Value: m.GetValueCapture(), Key: m.GetKeyCapture(), MaxKeys: m.GetMaxKeys(),
		Object: m.GetFunction().GetObject(), Symbols: m.GetFunction().GetSymbols(),
		DynamicCallsOnly: m.GetFunction().GetDynamicCallsOnly(), OneObject: m.GetFunction().GetOneObject(),
		Static: StaticProbe{
			Object: m.GetUsdt().GetObject(), Provider: m.GetUsdt().GetProvider(), Name: m.GetUsdt().GetName(),
		},
	}
	for _, c := range m.GetCaptures() {
		p.Captures = append(p.Captures, Capture{c})
	}
	for _, c := range m.GetPredicates() {
		p.Where = append(p.Where, Condition{
			Capture: c.GetCapture(), Mask: c.GetMask(), Is: Comparison(c.GetComparison()), Operand: Value{c.GetOperand()},
		})
	}
	for _, h := range m.GetProcesses() {
		p.Processes = append(p.Processes, Handle(h))
	}
	return p
}

func pointChangeFrom(r *attunev1.PointChangedRequest) PointChange {
	s := r.GetStatus()
	off := s.GetState() == attunev1.PointState_POINT_STATE_OFF
	reason := s.GetReason()
	if off {
		reason = s.GetDegradedReason()
	}
	return PointChange{
		Off:   off,
		Point: r.GetPointId(), Process: Handle(s.GetProcess()),
		Placed:    s.GetState() == attunev1.PointState_POINT_STATE_PLACED,
		Removed:   s.GetState() == attunev1.PointState_POINT_STATE_REMOVED,
		Mechanism: s.GetMechanism(), Reason: reason, Symbols: s.GetSymbols(),
		CostNanos: s.GetCostNanos(), CostMeasured: s.GetCostMeasured(),
		Late: time.Duration(s.GetLateNanos()),
	}
}
