// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// types by their names.
var types = map[string]attunev1.CaptureType{
	"i8": attunev1.CaptureType_CAPTURE_TYPE_I8, "i16": attunev1.CaptureType_CAPTURE_TYPE_I16,
	"i32": attunev1.CaptureType_CAPTURE_TYPE_I32, "i64": attunev1.CaptureType_CAPTURE_TYPE_I64,
	"u8": attunev1.CaptureType_CAPTURE_TYPE_U8, "u16": attunev1.CaptureType_CAPTURE_TYPE_U16,
	"u32": attunev1.CaptureType_CAPTURE_TYPE_U32, "u64": attunev1.CaptureType_CAPTURE_TYPE_U64,
	"ptr": attunev1.CaptureType_CAPTURE_TYPE_POINTER,
	"f32": attunev1.CaptureType_CAPTURE_TYPE_F32, "f64": attunev1.CaptureType_CAPTURE_TYPE_F64,
	"str": attunev1.CaptureType_CAPTURE_TYPE_STRING, "gostr": attunev1.CaptureType_CAPTURE_TYPE_SIZED_STRING,
	"int": attunev1.CaptureType_CAPTURE_TYPE_I32, "long": attunev1.CaptureType_CAPTURE_TYPE_I64,
	"float": attunev1.CaptureType_CAPTURE_TYPE_F32, "double": attunev1.CaptureType_CAPTURE_TYPE_F64,
}

const typeNames = "i8 i16 i32 i64 u8 u16 u32 u64 ptr f32 f64 str gostr, or int long float double"

// contexts by their names.
var contexts = map[string]attunev1.CaptureContext{
	"tid":    attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD,
	"cpu":    attunev1.CaptureContext_CAPTURE_CONTEXT_CPU,
	"caller": attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE,
	"stack":  attunev1.CaptureContext_CAPTURE_CONTEXT_STACK,
}

// Limits of the protocol.
const (
	maxCaptures   = 8
	maxPredicates = 8
	maxSteps      = 4
	maxKeys       = 1024
	maxString     = 256
)

// value reads [NAME =] SOURCE [: TYPE] and returns the name of the capture.
func (p *parser) value() (string, error) {
	name := ""
	if t := p.tokens[0]; t.kind == word && p.tokens[1].kind == symbol && p.tokens[1].text == "=" {
		if isDigit(t.text[0]) {
			return "", p.unexpected("a name")
		}
		name = t.text
		p.next()
		p.next()
	}
	return p.source(name)
}

// source reads SOURCE [: TYPE] and returns the name of the capture, which is
// how it is written unless it was given one. What is written as an earlier
// capture's name is that capture.
func (p *parser) source(name string) (string, error) {
	first := p.tokens[0]
	if known := p.capture(first.text); first.kind == word && name == "" && known != nil && !p.continues() {
		p.next()
		return known.GetName(), nil
	}
	before := p.tokens
	c := &attunev1.Capture{}
	if err := p.from(c); err != nil {
		return "", err
	}
	c.Name = name
	if name == "" {
		c.Name = written(before[:len(before)-len(p.tokens)])
	}
	if err := p.typed(c); err != nil {
		return "", err
	}
	return c.Name, p.add(c)
}

// continues says whether a word is only the beginning of a source.
func (p *parser) continues() bool {
	t := p.tokens[1]
	return t.kind == symbol && slices.Contains([]string{"->", ".", "+", ":", "["}, t.text)
}

// written joins tokens as they were.
func written(list []token) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.text)
	}
	return b.String()
}

func (p *parser) capture(name string) *attunev1.Capture {
	for _, c := range p.spec.GetCaptures() {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// add adds a capture; the same one again is none.
func (p *parser) add(c *attunev1.Capture) error {
	if known := p.capture(c.GetName()); known != nil {
		if proto.Equal(known, c) {
			return nil
		}
		return fmt.Errorf("two values are called %s: name one, as in total=%s", c.GetName(), c.GetName())
	}
	if len(c.GetDereference()) > maxSteps {
		return fmt.Errorf("%s: more than %d steps through memory", c.GetName(), maxSteps)
	}
	p.spec.Captures = append(p.spec.Captures, c)
	if len(p.spec.GetCaptures()) > maxCaptures {
		return fmt.Errorf("more than %d values", maxCaptures)
	}
	return nil
}

// from reads SOURCE.
func (p *parser) from(c *attunev1.Capture) error {
	if p.accept(symbol, "*") {
		if err := p.from(c); err != nil {
			return err
		}
		if c.GetPath() != "" {
			return errors.New("what a name from the debug information points to has a name as well: write request->count")
		}
		c.Dereference = append(c.Dereference, 0)
		return nil
	}
	if p.accept(symbol, "@") {
		if p.tokens[0].kind != word {
			return p.unexpected("the name of a variable")
		}
		c.Source = &attunev1.Capture_Global{Global: &attunev1.GlobalVariable{Symbol: p.next().text}}
		c.Dereference = []int32{0}
		return p.steps(c)
	}
	t := p.tokens[0]
	if t.kind != word || isDigit(t.text[0]) {
		return p.unexpected("a value: argN, ret, tid, cpu, caller, stack, @VARIABLE, or a parameter's name")
	}
	return p.named(c, p.next().text)
}

// named reads what begins with a word.
func (p *parser) named(c *attunev1.Capture, name string) error {
	if context, ok := contexts[name]; ok {
		c.Source = &attunev1.Capture_Context{Context: context}
		return nil
	}
	if name == "ret" {
		if p.spec.GetPlace() == attunev1.Place_PLACE_ENTRY {
			return errors.New("a function has no result at its entry: write FUNCTION%return")
		}
		c.Source = &attunev1.Capture_Returned{Returned: true}
		return p.steps(c)
	}
	if digits, ok := strings.CutPrefix(name, "arg"); ok && strings.Trim(digits, "0123456789") == "" && digits != "" {
		n, err := strconv.ParseUint(digits, 10, 8)
		if err != nil {
			return fmt.Errorf("%s: parameters are arg0, arg1 and so on", name)
		}
		c.Source = &attunev1.Capture_Parameter{Parameter: uint32(n)}
		return p.steps(c)
	}
	return p.path(c, name)
}

// steps reads {-> OFFSET | + OFFSET}: a step through memory, or further along
// where the last one led.
func (p *parser) steps(c *attunev1.Capture) error {
	for {
		switch {
		case p.accept(symbol, "->"):
			c.Dereference = append(c.Dereference, 0)
		case p.accept(symbol, "+"):
			if len(c.GetDereference()) == 0 {
				return p.unexpected("-> and the offset of a member")
			}
		default:
			return nil
		}
		t := p.tokens[0]
		offset, err := strconv.ParseInt(t.text, 0, 32)
		last := &c.Dereference[len(c.GetDereference())-1]
		if err != nil || offset < 0 || int64(*last)+offset > math.MaxInt32 {
			return p.unexpected("the offset of a member in bytes (a member's name needs a parameter's name before it)")
		}
		*last += int32(offset)
		p.next()
	}
}

// path reads NAME {-> MEMBER | . MEMBER | [INDEX]} as the source code has it.
func (p *parser) path(c *attunev1.Capture, path string) error {
	for {
		switch {
		case p.is(symbol, "->"), p.is(symbol, "."):
			path += p.next().text
		case p.accept(symbol, "["):
			if p.tokens[0].kind != word || !isDigit(p.tokens[0].text[0]) {
				return p.unexpected("an index")
			}
			path += "[" + p.next().text + "]"
			if !p.accept(symbol, "]") {
				return p.unexpected("]")
			}
			continue
		default:
			c.Source = &attunev1.Capture_Path{Path: path}
			return nil
		}
		if p.tokens[0].kind != word {
			return p.unexpected("the name of a member")
		}
		path += p.next().text
	}
}

// isString says whether a type is of strings.
func isString(t attunev1.CaptureType) bool {
	return t == attunev1.CaptureType_CAPTURE_TYPE_STRING || t == attunev1.CaptureType_CAPTURE_TYPE_SIZED_STRING
}

// typed reads [: TYPE], where str may have a limit: str(100).
func (p *parser) typed(c *attunev1.Capture) error {
	if !p.accept(symbol, ":") {
		if c.GetReturned() && len(c.GetDereference()) == 0 {
			c.Type = attunev1.CaptureType_CAPTURE_TYPE_I64
		}
		return nil
	}
	var ok bool
	if c.Type, ok = types[p.tokens[0].text]; !ok {
		return p.unexpected("a type: " + typeNames)
	}
	switch {
	case c.GetPath() != "":
		return errors.New("a name from the debug information has its type there")
	case c.GetContext() != 0:
		return errors.New("tid, cpu, caller and stack have no type")
	}
	if p.next(); !isString(c.GetType()) || !p.accept(symbol, "(") {
		return nil
	}
	var err error
	if c.StringLimit, err = p.count("a number of bytes", maxString); err == nil && !p.accept(symbol, ")") {
		err = p.unexpected(")")
	}
	return err
}
