// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The bounds of a text.
const (
	maxText = 16 << 10
	maxName = 60 // runes
)

// The times between two runs of a command.
const (
	usualEvery = time.Second
	leastEvery = 100 * time.Millisecond
	mostEvery  = time.Minute
)

// Parse reads an objective. The error says what to write instead.
func Parse(text string) (Spec, error) {
	if !utf8.ValidString(text) || len(text) > maxText {
		return Spec{}, fmt.Errorf("it is not UTF-8 of at most %d bytes", maxText)
	}
	s := Spec{}
	head, kind, what := cutKind(text)
	if kind == "" {
		return Spec{}, errors.New("it says not where to look: write output:, file:, point: or command: and what to look for")
	}
	name, words := cutName(head)
	s.Kind, s.Name = kind, name
	if first, rest, more := strings.Cut(name, " "); more && slices.Contains(modifiers, first) {
		return Spec{}, fmt.Errorf("the name comes first: write %q", rest+"="+first+" …")
	}
	if err := s.takeWords(words); err != nil {
		return Spec{}, err
	}
	if strings.TrimSpace(what) == "" {
		return Spec{}, fmt.Errorf("nothing stands behind %s: to be looked for", s.Kind)
	}
	if err := s.takeWhat(what); err != nil {
		return Spec{}, fmt.Errorf("%s: %w", s.Kind, err)
	}
	s.Name = cmp.Or(s.Name, shorten(what))
	return s, nil
}

// OfService reads an objective that services measure, nil of an empty text. Commands are
// refused: a service executes nothing of a user's outside of their jobs.
func OfService(text string) (*Spec, error) {
	if text == "" {
		return nil, nil
	}
	spec, err := Parse(text)
	switch {
	case err != nil:
		return nil, err
	case spec.Kind == Command:
		return nil, errors.New("a service runs no command of a user's: have the job write the number to a file that it keeps open, and measure with file: or output:, or use attune run in the job")
	}
	return &spec, nil
}

// cutKind cuts a text at the first of the words of the kinds that begins a word and has a colon
// behind it; "": none does.
func cutKind(text string) (head string, first Kind, what string) {
	at := -1
	for _, kind := range kinds {
		for from := 0; ; {
			i := strings.Index(text[from:], string(kind)+":")
			if i < 0 {
				break
			}
			i += from
			if i == 0 || text[i-1] == '=' || unicode.IsSpace(rune(text[i-1])) {
				if at < 0 || i < at {
					at, head, first, what = i, text[:i], kind, text[i+len(kind)+1:]
				}
				break
			}
			from = i + 1
		}
	}
	return head, first, what
}

// cutName cuts a name and = off the beginning, and returns the words behind them.
func cutName(head string) (name string, words []string) {
	name, rest, named := strings.Cut(head, "=")
	if !named {
		name, rest = "", head
	}
	return shorten(name), strings.Fields(rest)
}

// modifiers are the words that may stand before a kind.
var modifiers = []string{"more", "less", string(Value), string(Rate), string(Sum), "every"}

// takeWords takes what stands before the kind.
func (s *Spec) takeWords(words []string) error {
	for i := 0; i < len(words); i++ {
		switch word := words[i]; word {
		case "less":
			s.Lower = true
		case "more":
			s.Lower = false
		case string(Value), string(Rate), string(Sum):
			if s.Meaning != Matches {
				return fmt.Errorf("%s and %s exclude each other", s.Meaning, word)
			}
			s.Meaning = Meaning(word)
		case "every":
			i++
			if err := s.takeEvery(words[min(i, len(words)-1)]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is no word of an objective: before %s: may stand NAME=, and then %s", word, s.Kind, strings.Join(modifiers, ", "))
		}
	}
	return nil
}

// takeEvery takes how often a command runs.
func (s *Spec) takeEvery(text string) error {
	every, err := time.ParseDuration(text)
	switch {
	case s.Kind != Command:
		return fmt.Errorf("every is for commands: %s is read as it comes", s.Kind)
	case err != nil:
		return fmt.Errorf("every %s: write a time with its unit, for example 2s", text)
	case every < leastEvery || every > mostEvery:
		return fmt.Errorf("every %v: a command runs every %v to %v", every, leastEvery, mostEvery)
	}
	s.Every = every
	return nil
}

// takeWhat takes what stands behind the kind.
func (s *Spec) takeWhat(what string) (err error) {
	switch s.Kind {
	case Point:
		return s.takePoint(what)
	case Command:
		s.Command = what
		s.Meaning, s.Every = cmp.Or(s.Meaning, Value), cmp.Or(s.Every, usualEvery)
		return nil
	case File:
		path, pattern, found := strings.Cut(what, ":")
		if !found || path == "" || pattern == "" {
			return errors.New("write file:PATH:REGEX")
		}
		s.Path, what = path, pattern
	}
	if s.Pattern, err = bounded.Regexp(what); err != nil {
		return fmt.Errorf("%w: write a regular expression (RE2)", err)
	}
	return s.checkNumber()
}

// checkNumber checks that there is a number where one is meant.
func (s *Spec) checkNumber() error {
	switch groups := s.Pattern.NumSubexp(); {
	case s.Pattern.MatchString(""):
		return errors.New("it matches an empty line, so each line would count: write what only the lines have that count")
	case s.Meaning == Matches && groups > 0:
		s.Meaning = Value
	case s.Meaning != Matches && groups == 0:
		return fmt.Errorf(`%s needs a number: put it in parentheses, as in rate output:step ([0-9]+)`, s.Meaning)
	}
	return nil
}

// takePoint takes a measure point, whose hits count.
func (s *Spec) takePoint(text string) error {
	point, err := pointtext.Parse(text)
	if err != nil {
		return err
	}
	switch spec := point.Spec; {
	case s.Meaning != Matches:
		return fmt.Errorf("each call counts as one: leave %s out", s.Meaning)
	case spec.GetDelivery() != attunev1.Delivery_DELIVERY_AGGREGATE || spec.GetPlace() == attunev1.Place_PLACE_BOTH || point.Value != "" || spec.GetKeyCapture() != "":
		return errors.New("each call counts as one: leave take, sum, by, each, every and %time out")
	}
	s.Point = point.Spec
	return nil
}

// shorten returns a text that fits in a line.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxName {
		return string(runes[:maxName-1]) + "…"
	}
	return text
}
