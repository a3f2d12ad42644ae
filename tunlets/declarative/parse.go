// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Line in the file, from 1.
	Line int
	// Text says what is wrong, and what to write instead where that is known.
	Text string
}

func (p *Problem) Error() string { return fmt.Sprintf("line %d: %s", p.Line, p.Text) }

// parser reads nodes of a file, and collects what is wrong.
type parser struct {
	problems []*Problem
}

func (p *parser) wrong(line int, format string, arguments ...any) {
	p.problems = append(p.problems, &Problem{line, fmt.Sprintf(format, arguments...)})
}

// err returns all problems in the order of their lines; nil: there are none.
func (p *parser) err() error {
	slices.SortStableFunc(p.problems, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(p.problems))
	for i, problem := range p.problems {
		errs[i] = problem
	}
	return errors.Join(errs...)
}

// field is one of a section.
type field struct {
	name     string
	required bool
	read     func(*yaml.Node)
}

// section reads a mapping whose fields are known. what names it in errors.
func (p *parser) section(n *yaml.Node, what string, fields ...field) {
	if n.Kind != yaml.MappingNode {
		p.wrong(n.Line, "%s: want fields (name: value), each on a line of its own", what)
		return
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		switch {
		case at < 0:
			p.wrong(key.Line, "%s has no field %q; it has: %s", what, key.Value, names(fields))
		case given[key.Value]:
			p.wrong(key.Line, "%s: %s is given twice", what, key.Value)
		default:
			fields[at].read(value)
		}
		given[key.Value] = true
	}
	for _, f := range fields {
		if f.required && !given[f.name] {
			p.wrong(n.Line, "%s: %s is missing", what, f.name)
		}
	}
}

func names(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

// list reads a sequence.
func (p *parser) list(what string, item func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			p.wrong(n.Line, "%s: want a list, each item after a dash", what)
			return
		}
		for _, c := range n.Content {
			item(c)
		}
	}
}

// scalar reads what is no list and has no fields by parse, whose error says what
// is wanted.
func scalar[T any](p *parser, what string, to *T, parse func(string) (T, error)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			p.wrong(n.Line, "%s: want one value", what)
			return
		}
		v, err := parse(strings.TrimSpace(n.Value))
		if err != nil {
			p.wrong(n.Line, "%s: %q is not %v", what, n.Value, err)
			return
		}
		*to = v
	}
}

func (p *parser) text(what string, to *string) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (string, error) {
		if s == "" {
			return "", errors.New("a text")
		}
		return s, nil
	})
}

// choice reads one of some words.
func choice[T any](p *parser, what string, to *T, words map[string]T) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (T, error) {
		v, ok := words[s]
		if !ok {
			return v, fmt.Errorf("one of %s", strings.Join(sortedKeys(words), ", "))
		}
		return v, nil
	})
}

func (p *parser) number(what string, to *float64, least, most float64) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (float64, error) {
		v, err := sdk.ParseNumber(s)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("a number from %v to %v", least, most)
		}
		return v, nil
	})
}

func (p *parser) bytes(what string, to *uint64) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (uint64, error) {
		v, err := sdk.ParseBytes(s)
		if err != nil {
			return 0, errors.New("a whole number, which KiB, MiB or GiB may follow")
		}
		return v, nil
	})
}

func (p *parser) count(what string, to *uint32, most uint32) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (uint32, error) {
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil || v > uint64(most) {
			return 0, fmt.Errorf("a whole number from 0 to %d", most)
		}
		return uint32(v), nil
	})
}

func (p *parser) duration(what string, to *time.Duration, least, most time.Duration) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("a time with its unit, as in 250ms, from %v to %v", least, most)
		}
		return v, nil
	})
}

func (p *parser) truth(what string, to *bool) func(*yaml.Node) {
	return choice(p, what, to, map[string]bool{"true": true, "false": false})
}
