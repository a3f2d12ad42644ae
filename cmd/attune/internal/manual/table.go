// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// rows are the lines of a table in Markdown.
var rows = regexp.MustCompile(`(?m)(^\|.*\n)+`)

// listed has each row of a table as an entry of a list: a page of the manual is too
// narrow for what stands in tables. The first column is the name, the second what it
// means, and the others follow with their titles.
func listed(text string) string {
	return rows.ReplaceAllStringFunc(text, func(table string) string {
		lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
		if len(lines) < 2 {
			return table
		}
		titles := cells(lines[0])
		var b strings.Builder
		for _, line := range lines[2:] { // the second one is a ruler
			b.WriteString("\n")
			for i, cell := range cells(line) {
				switch {
				case i == 0:
					b.WriteString(cell + "\n: ")
				case i == 1:
					b.WriteString(cell)
				case cell != "":
					b.WriteString(" " + titles[i] + ": " + cell + ".")
				}
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}

// cells are those of a row; \| is a bar within one.
func cells(row string) []string {
	const bar = "\x00"
	row = strings.Trim(strings.ReplaceAll(row, `\|`, bar), "|")
	list := strings.Split(row, "|")
	for i, cell := range list {
		list[i] = strings.ReplaceAll(strings.TrimSpace(cell), bar, "|")
	}
	return list
}
