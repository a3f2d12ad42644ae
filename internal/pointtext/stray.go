// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/symname"
)

// stray refuses a word behind the name of a function that begins no clause. Plain
// names have no blanks; demangled ones may (std::map<int, int>::at(int) const), and
// there a word is refused that nearly begins a clause.
func stray(head string) error {
	from := 0
	if object, function, ok := strings.Cut(head, ":"); ok && !strings.HasPrefix(function, ":") {
		from = len(object) + 1
	}
	demangled := strings.ContainsAny(head[from:], "(<[{") || strings.Contains(head[from:], "operator")
	depth, first := 0, true
	for at := from; at < len(head); {
		n := strings.IndexAny(head[at:], " \t")
		if n < 0 {
			n = len(head) - at
		}
		one := head[at : at+n]
		if one != "" && !first && depth <= 0 && (!demangled || nearest(one) != "") {
			return unknownWord(one, at)
		}
		depth += strings.Count(one, "(") - strings.Count(one, ")")
		first = first && one == ""
		at += n + 1
	}
	return nil
}

// unknownWord is the error of a word at a place that begins no clause.
func unknownWord(one string, at int) error {
	meant := ""
	if near := nearest(one); near != "" {
		meant = fmt.Sprintf("; do you mean %s?", near)
	}
	return fmt.Errorf("unknown word %q at column %d: a clause begins with %s%s", one, at+1, strings.Join(clauses, ", "), meant)
}

// nearest is the word of a clause that has the same letters, or differs in one; empty
// if there is none.
func nearest(one string) string {
	closest := symname.NewSuggestions(one, 1)
	for _, clause := range clauses {
		if sorted(one) == sorted(clause) {
			return clause
		}
		closest.Add([]byte(clause))
	}
	return strings.Join(closest.Names(), "")
}

func sorted(word string) string {
	letters := []byte(word)
	slices.Sort(letters)
	return string(letters)
}
