// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// parser reads clauses from tokens into a spec.
type parser struct {
	tokens []token // the last one is the end
	spec   *attunev1.MeasurePoint
	seen   map[string]bool // clauses
	taken  []string        // names of the captures of take
}

func (p *parser) is(k kind, text string) bool {
	t := p.tokens[0]
	return t.kind == k && (t.text == text || k == end)
}

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes a symbol or keyword if it comes next.
func (p *parser) accept(k kind, text string) bool {
	ok := p.is(k, text)
	if ok {
		p.next()
	}
	return ok
}

// unexpected says what stands where something else should.
func (p *parser) unexpected(wanted string) error {
	if t := p.tokens[0]; t.kind != end {
		return fmt.Errorf("%q at column %d, where %s should be", t.text, t.at+1, wanted)
	}
	return fmt.Errorf("it ends where %s should be", wanted)
}

func (p *parser) clause() error {
	t := p.next()
	if p.seen[t.text] {
		return fmt.Errorf("%q is there twice", t.text)
	}
	p.seen[t.text] = true
	switch t.text {
	case "take":
		return p.take()
	case "if":
		return p.conditions()
	case "sum":
		return p.chosen(&p.spec.ValueCapture)
	case "by":
		return p.by()
	case "each": // [coarse]
		p.spec.CoarseTime = p.accept(word, "coarse")
		return p.deliver(attunev1.Delivery_DELIVERY_EVENT)
	case "every":
		return p.every()
	}
	return unknownWord(t.text, t.at)
}

// take reads VALUE {, VALUE}.
func (p *parser) take() error {
	for {
		name, err := p.value()
		if err != nil {
			return err
		}
		p.taken = append(p.taken, name)
		if !p.accept(symbol, ",") {
			return nil
		}
	}
}

func (p *parser) chosen(into *string) (err error) {
	*into, err = p.value()
	return err
}

// by reads VALUE [keys NUMBER].
func (p *parser) by() error {
	if err := p.chosen(&p.spec.KeyCapture); err != nil || !p.accept(word, "keys") {
		return err
	}
	n, err := p.count("a number of keys", maxKeys)
	p.spec.MaxKeys = n
	return err
}

func (p *parser) every() error {
	n, err := p.count("a number, as in every 100", math.MaxInt32)
	p.spec.SampleEvery = n
	if err != nil {
		return err
	}
	return p.deliver(attunev1.Delivery_DELIVERY_SAMPLED)
}

func (p *parser) deliver(how attunev1.Delivery) error {
	if p.seen["each"] && p.seen["every"] {
		return errors.New("each and every exclude one another")
	}
	p.spec.Delivery = how
	return nil
}

// count reads a positive number.
func (p *parser) count(what string, most uint32) (uint32, error) {
	t := p.tokens[0]
	n, err := strconv.ParseUint(t.text, 0, 32)
	if t.kind != word || err != nil {
		return 0, p.unexpected(what)
	}
	if n == 0 || n > uint64(most) {
		return 0, fmt.Errorf("%s is not from 1 to %d", t.text, most)
	}
	p.next()
	return uint32(n), nil
}

// comparisons by their symbols.
var comparisons = map[string]attunev1.Comparison{
	"==": attunev1.Comparison_COMPARISON_EQUAL,
	"=":  attunev1.Comparison_COMPARISON_EQUAL,
	"!=": attunev1.Comparison_COMPARISON_NOT_EQUAL,
	"<":  attunev1.Comparison_COMPARISON_LESS,
	"<=": attunev1.Comparison_COMPARISON_LESS_EQUAL,
	">":  attunev1.Comparison_COMPARISON_GREATER,
	">=": attunev1.Comparison_COMPARISON_GREATER_EQUAL,
}

// conditions reads CONDITION {and CONDITION}.
func (p *parser) conditions() error {
	for {
		if err := p.condition(); err != nil {
			return err
		}
		if p.is(word, "or") {
			return errors.New(`there is no "or": write two points`)
		}
		if !p.accept(word, "and") {
			return nil
		}
	}
}

// condition reads VALUE [& MASK] COMPARISON NUMBER.
func (p *parser) condition() error {
	name, err := p.source("")
	if err != nil {
		return err
	}
	c := &attunev1.Predicate{Capture: name}
	if p.accept(symbol, "&") {
		if c.Mask, err = strconv.ParseUint(p.tokens[0].text, 0, 64); err != nil || c.Mask == 0 {
			return p.unexpected("a mask, as in arg1 & 0x40 != 0")
		}
		p.next()
	}
	var ok bool
	if c.Comparison, ok = comparisons[p.tokens[0].text]; !ok {
		return p.unexpected("one of == != < <= > >=")
	}
	p.next()
	if c.Operand, err = p.number(); err != nil {
		return err
	}
	p.spec.Predicates = append(p.spec.Predicates, c)
	if len(p.spec.GetPredicates()) > maxPredicates {
		return fmt.Errorf("more than %d conditions", maxPredicates)
	}
	return nil
}

// number reads an integer, 4K, 0x10, 1.5, with a sign.
func (p *parser) number() (*attunev1.Value, error) {
	negative := p.accept(symbol, "-")
	t := p.tokens[0]
	if t.kind != word {
		return nil, p.unexpected("a number")
	}
	v, ok := numberValue(t.text, negative)
	if !ok {
		return nil, p.unexpected("a number")
	}
	p.next()
	return v, nil
}

func numberValue(text string, negative bool) (*attunev1.Value, bool) {
	if strings.Contains(text, ".") {
		real, err := strconv.ParseFloat(text, 64)
		if negative {
			real = -real
		}
		return &attunev1.Value{Kind: &attunev1.Value_Real{Real: real}}, err == nil
	}
	digits, shift := text, 0
	if at := strings.IndexByte("KMG", text[len(text)-1]); at >= 0 {
		digits, shift = text[:len(text)-1], 10*(at+1)
	}
	n, err := strconv.ParseUint(digits, 0, 64)
	switch {
	case err != nil || n<<shift>>shift != n:
		return nil, false
	case negative && n<<shift > 1<<63:
		return nil, false
	case negative:
		return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: -int64(n << shift)}}, true
	}
	return &attunev1.Value{Kind: &attunev1.Value_Unsigned{Unsigned: n << shift}}, true
}
