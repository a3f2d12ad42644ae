// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"cmp"
	"errors"
	"fmt"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrInvalid says that the point asks for something that does not exist, whatever the
// process and the mechanism.
var ErrInvalid = errors.New("invalid capture")

// Compile checks what a measure point captures. A point without captures gives
// an empty Program. Paths must have been resolved to sources before.
func Compile(point *attunev1.MeasurePoint) (Program, error) {
	p := Program{Value: None, Key: None}
	for _, c := range point.GetCaptures() {
		capture, err := compileCapture(c, point.GetPlace())
		if err == nil && p.index(capture.Name) != None {
			err = errors.New("another capture has that name")
		}
		if err != nil {
			return Program{}, fmt.Errorf("%w %q: %w", ErrInvalid, c.GetName(), err)
		}
		p.Captures = append(p.Captures, capture)
	}
	for _, c := range point.GetPredicates() {
		predicate, err := p.compilePredicate(c)
		if err != nil {
			return Program{}, fmt.Errorf("%w: predicate on %q: %w", ErrInvalid, c.GetCapture(), err)
		}
		p.Predicates = append(p.Predicates, predicate)
	}
	if err := p.choose(point); err != nil {
		return Program{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := p.checkSize(); err != nil {
		return Program{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return p, nil
}

// index of the capture of that name, None if there is none.
func (p Program) index(name string) int {
	for i, c := range p.Captures {
		if c.Name == name {
			return i
		}
	}
	return None
}

// choose finds the captures that are value and key.
func (p *Program) choose(point *attunev1.MeasurePoint) (err error) {
	if p.Value, err = p.chosen("value", point.GetValueCapture()); err != nil {
		return err
	}
	if p.Value != None && p.Captures[p.Value].Text() {
		return fmt.Errorf("the value is capture %q, which is no number", point.GetValueCapture())
	}
	if p.Key, err = p.chosen("key", point.GetKeyCapture()); err != nil {
		return err
	}
	if p.Key == None {
		if point.GetMaxKeys() != 0 {
			return errors.New("a number of keys, but no key")
		}
		return nil
	}
	if point.GetDelivery() == attunev1.Delivery_DELIVERY_EVENT || point.GetDelivery() == attunev1.Delivery_DELIVERY_SAMPLED {
		return errors.New("a key is for aggregates; records carry all captures")
	}
	p.MaxKeys = defaultKeys
	if n := point.GetMaxKeys(); n != 0 {
		p.MaxKeys = int(min(n, MaxKeys+1))
	}
	return nil
}

// chosen finds a capture that has a role.
func (p *Program) chosen(role, name string) (int, error) {
	if name == "" {
		return None, nil
	}
	i := p.index(name)
	if i == None {
		return None, fmt.Errorf("the %s is capture %q, which is not among the captures", role, name)
	}
	return i, nil
}

func (p *Program) checkSize() error {
	strings := 0
	for i, c := range p.Captures {
		strings += c.Limit
		if c.Source == SourceStack && i != p.Key {
			return errors.New("the stack can be a key only")
		}
	}
	switch {
	case len(p.Captures) > MaxCaptures:
		return fmt.Errorf("%d captures: at most %d", len(p.Captures), MaxCaptures)
	case len(p.Predicates) > MaxPredicates:
		return fmt.Errorf("%d predicates: at most %d", len(p.Predicates), MaxPredicates)
	case strings > MaxStrings:
		return fmt.Errorf("strings of up to %d bytes together: at most %d", strings, MaxStrings)
	case p.MaxKeys > MaxKeys:
		return fmt.Errorf("more than %d keys", MaxKeys)
	}
	return nil
}

func (p *Program) compilePredicate(c *attunev1.Predicate) (Predicate, error) {
	i := p.index(c.GetCapture())
	if i == None {
		return Predicate{}, errors.New("it is not among the captures")
	}
	t := p.Captures[i].Type
	op := Operator(c.GetComparison())
	switch {
	case op == 0 || op > Operator(attunev1.Comparison_COMPARISON_GREATER_EQUAL):
		return Predicate{}, errors.New("no comparison that is known here")
	case p.Captures[i].Text():
		return Predicate{}, errors.New("strings and stacks cannot be compared")
	case t.Float() && c.GetMask() != 0:
		return Predicate{}, errors.New("a mask is for integers")
	}
	operand, err := constant(c.GetOperand(), t)
	mask := cmp.Or(c.GetMask(), ^uint64(0))
	return Predicate{Capture: i, Operator: op, Mask: mask, Operand: operand}, err
}
