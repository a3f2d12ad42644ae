// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// processes names one process, or says how many there are.
func processes(pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("process %d", pids[0])
	}
	return fmt.Sprintf("%d processes", len(pids))
}

// times says how often, if more than once.
func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

// predicted says what a model promises; empty: nothing.
func predicted(gain float64) string {
	if gain <= 0 {
		return ""
	}
	return fmt.Sprintf(", predicted %s times better", figure(gain, 3))
}

// figure returns a number with so many significant digits, without an exponent.
func figure(v float64, digits int) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil { // cannot happen: it has just been written
		rounded = v
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// exeName returns the name of an executable, "?" if it is not known.
func exeName(path string) string {
	if path == "" {
		return "?"
	}
	return filepath.Base(path)
}

// shownNames is how many names stand for a longer list.
const shownNames = 3

// someOf returns the first of some names.
func someOf(names []string) string {
	if len(names) > shownNames {
		names = append(slices.Clone(names[:shownNames]), "…")
	}
	return strings.Join(names, ", ")
}
