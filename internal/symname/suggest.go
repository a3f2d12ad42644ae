// SPDX-License-Identifier: Apache-2.0

package symname

import (
	"cmp"
	"slices"
	"strings"
)

// Suggestions collects the names that are closest to one that does not exist.
// It is for one goroutine.
type Suggestions struct {
	want, last string
	limit      int
	best       []suggestion
}

type suggestion struct {
	name     string
	distance int
}

// NewSuggestions looks for up to limit names that are close to a query.
func NewSuggestions(text string, limit int) *Suggestions {
	want := strings.ToLower(text)
	last := want
	if at := strings.LastIndex(want, "::"); at >= 0 {
		last = want[at+2:]
	}
	if end := strings.IndexByte(last, '('); end > 0 {
		last = last[:end]
	}
	return &Suggestions{want: want, last: last, limit: limit}
}

// Near returns up to limit of the names that are close to one that does not exist, the
// closest first: those with the same last part after a dot, and those that are spelled alike.
func Near(name string, names []string, limit int) []string {
	near := NewSuggestions(name, limit)
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	for _, n := range names {
		if last != "" && strings.Contains(strings.ToLower(n), last) {
			near.keep(suggestion{n, 0})
		} else {
			near.Add([]byte(n))
		}
	}
	return near.Names()
}

// Add considers a linker name.
func (s *Suggestions) Add(name []byte) {
	text := string(name)
	if Mangled(text) {
		if !s.resembles(strings.ToLower(text)) {
			return
		}
		text = Function(text)
	}
	lower := strings.ToLower(text)
	most := 1 + len(s.want)/5
	distance := edits(s.want, lower, most)
	if at := strings.LastIndex(lower, "::"); at >= 0 && distance > most {
		distance = edits(s.last, lower[at+2:], 1+len(s.last)/5) + 1
		most = 2 + len(s.last)/5
	}
	if distance <= most {
		s.keep(suggestion{text, distance})
	}
}

// resembles is a quick look at a mangled name: most are far away.
func (s *Suggestions) resembles(mangled string) bool {
	const letters = 3
	if len(s.last) <= letters {
		return strings.Contains(mangled, s.last)
	}
	return strings.Contains(mangled, s.last[:letters]) || strings.Contains(mangled, s.last[len(s.last)-letters:])
}

func (s *Suggestions) keep(one suggestion) {
	if slices.ContainsFunc(s.best, func(known suggestion) bool { return known.name == one.name }) {
		return
	}
	s.best = append(s.best, one)
	slices.SortFunc(s.best, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	s.best = s.best[:min(len(s.best), s.limit)]
}

// Names returns the closest names, the closest first.
func (s *Suggestions) Names() []string {
	var names []string
	for _, one := range s.best {
		names = append(names, one.name)
	}
	return names
}

// edits is the Levenshtein distance of two texts in bytes, or most+1 if it is
// larger than most.
func edits(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, smallest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
			smallest = min(smallest, next)
		}
		if smallest > most {
			return most + 1
		}
	}
	return min(row[len(b)], most+1)
}
