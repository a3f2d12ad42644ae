// SPDX-License-Identifier: Apache-2.0

// Package printable has the rule for what a person's terminal may have of texts that others choose, such
// as names of processes, programs and users' points. It keeps nothing and may be used from any goroutine.
package printable

import (
	"strings"
	"unicode"
)

// Line returns a text with "?" for all that a terminal would not show but obey, by moving the cursor or
// by changing the order of what is shown: all but what [unicode.IsPrint] takes, and what is no UTF-8.
func Line(text string) string { return replace(text, unicode.IsPrint) }

// Lines is Line for a text of several lines.
func Lines(text string) string {
	return replace(text, func(r rune) bool { return r == '\n' || unicode.IsPrint(r) })
}

func replace(text string, keep func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if keep(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?"))
}
