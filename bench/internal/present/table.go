// SPDX-License-Identifier: Apache-2.0

package present

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Table is a table of text; the first column is aligned to the left, the
// others to the right.
type Table struct {
	rows [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the table, two spaces between columns.
func (t *Table) Print(to io.Writer) {
	widths := t.widths()
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(to, strings.TrimRight(line.String(), " "))
	}
}

func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// Number returns a value with about three digits, "-" for none (NaN).
func Number(value float64) string {
	switch magnitude := math.Abs(value); {
	case math.IsNaN(value):
		return "-"
	case magnitude >= 100:
		return fmt.Sprintf("%.0f", value)
	case magnitude >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

// Times returns a gain, as "6.9x".
func Times(ratio float64) string {
	if math.IsNaN(ratio) {
		return "-"
	}
	return Number(ratio) + "x"
}
