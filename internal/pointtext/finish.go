// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"errors"
	"fmt"
	"math"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// finish checks what clauses mean together, and chooses how hits are delivered
// if none says so: what is taken is shown hit by hit, unless something is
// summed up.
func (p *parser) finish() (Point, error) {
	spec := p.spec
	events := p.seen["each"] || p.seen["every"]
	aggregates := p.seen["sum"] || p.seen["by"]
	switch {
	case events && aggregates:
		return Point{}, errors.New("sum and by add hits up, each and every show them one by one: leave one of them out")
	case p.seen["take"] && aggregates:
		return Point{}, errors.New("take shows hits one by one, sum and by add them up: leave one of them out")
	case p.seen["take"] && !events:
		spec.Delivery = attunev1.Delivery_DELIVERY_EVENT
	}
	if spec.GetPlace() == attunev1.Place_PLACE_BOTH && spec.GetValueCapture() != "" {
		return Point{}, errors.New("with %time the time is summed up: leave sum out, or write %return")
	}
	if err := checkStatic(spec); err != nil {
		return Point{}, err
	}
	if err := checkKeyOnly(spec); err != nil {
		return Point{}, err
	}
	if len(p.taken) == 1 && spec.GetPlace() != attunev1.Place_PLACE_BOTH {
		if c := p.capture(p.taken[0]); !isString(c.GetType()) {
			spec.ValueCapture = p.taken[0]
		}
	}
	point := Point{Spec: spec, Value: spec.GetValueCapture()}
	if spec.GetPlace() == attunev1.Place_PLACE_BOTH {
		point.Value = "time"
	}
	simplify(spec)
	return point, nil
}

// checkStatic refuses what a place within a function does not have. Its parameters
// are the arguments that its author gave it.
func checkStatic(spec *attunev1.MeasurePoint) error {
	if spec.GetUsdt() == nil {
		return nil
	}
	for _, c := range spec.GetCaptures() {
		if c.GetReturned() || c.GetPath() != "" {
			return fmt.Errorf("%s: a static probe stands within a function: it has arguments, arg0 and so on, but no results and no names for them", c.GetName())
		}
	}
	return nil
}

// checkKeyOnly refuses a stack, and a string, where only a number serves.
func checkKeyOnly(spec *attunev1.MeasurePoint) error {
	for _, c := range spec.GetCaptures() {
		if c.GetContext() == attunev1.CaptureContext_CAPTURE_CONTEXT_STACK && c.GetName() != spec.GetKeyCapture() {
			return fmt.Errorf("%s: a stack is what hits are kept apart by: write by stack", c.GetName())
		}
		if isString(c.GetType()) && c.GetName() == spec.GetValueCapture() {
			return fmt.Errorf("%s: a string has no sum: write by %s", c.GetName(), c.GetName())
		}
	}
	return nil
}

// simplify says in the point's own value what needs no captures, which is the
// cheapest that mechanisms offer: one parameter, and bounds for it. A static probe's
// argument may be a floating point number, which only a capture of it knows to refuse.
func simplify(spec *attunev1.MeasurePoint) {
	if spec.GetUsdt() != nil || len(spec.GetCaptures()) != 1 || spec.GetKeyCapture() != "" || spec.GetPlace() != attunev1.Place_PLACE_ENTRY {
		return
	}
	c := spec.GetCaptures()[0]
	parameter, ok := c.GetSource().(*attunev1.Capture_Parameter)
	if !ok || c.GetType() != attunev1.CaptureType_CAPTURE_TYPE_UNSPECIFIED || len(c.GetDereference()) > 0 ||
		parameter.Parameter >= plainParameters {
		return
	}
	least, most, ok := bounds(spec.GetPredicates())
	if !ok {
		return
	}
	spec.Parameter, spec.MinValue, spec.MaxValue = parameter.Parameter, least, most
	spec.Captures, spec.Predicates, spec.ValueCapture = nil, nil, ""
}

// plainParameters can be a point's own value.
const plainParameters = 6

// bounds says conditions on one unsigned number as the point's own bounds, if
// they can be: a greatest value of 0 would mean that there is none.
func bounds(conditions []*attunev1.Predicate) (least, most uint64, ok bool) {
	most = math.MaxUint64
	for _, c := range conditions {
		operand, isUnsigned := c.GetOperand().GetKind().(*attunev1.Value_Unsigned)
		if !isUnsigned || c.GetMask() != 0 {
			return 0, 0, false
		}
		n := operand.Unsigned
		switch c.GetComparison() {
		case attunev1.Comparison_COMPARISON_EQUAL:
			least, most = max(least, n), min(most, n)
		case attunev1.Comparison_COMPARISON_GREATER_EQUAL:
			least = max(least, n)
		case attunev1.Comparison_COMPARISON_LESS_EQUAL:
			most = min(most, n)
		case attunev1.Comparison_COMPARISON_GREATER:
			if n == math.MaxUint64 {
				return 0, 0, false
			}
			least = max(least, n+1)
		case attunev1.Comparison_COMPARISON_LESS:
			if n == 0 {
				return 0, 0, false
			}
			most = min(most, n-1)
		default:
			return 0, 0, false
		}
	}
	if most == math.MaxUint64 {
		return least, 0, true
	}
	return least, most, most > 0 && least <= most
}
