// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"text/template"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// functions are what templates may call.
func functions() template.FuncMap {
	return template.FuncMap{
		"comment":    comment,
		"fields":     fields,
		"goName":     goName,
		"goType":     goType,
		"kindText":   kindText,
		"ofKind":     ofKind,
		"parts":      parts,
		"read":       read,
		"signalSize": signalSize,
		"subject":    subject,
		"title":      title,
		"write":      write,
	}
}

// goName is a name in Go: CPUsAllowed of cpus_allowed.
func goName(name string) string {
	initials := map[string]string{"cpu": "CPU", "cpus": "CPUs", "fd": "FD", "gc": "GC", "io": "IO", "rtt": "RTT", "tcp": "TCP", "tid": "TID"}
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if whole, ok := initials[word]; ok {
			out.WriteString(whole)
			continue
		}
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// kindText is what the reference says of how values are to be taken.
func kindText(s series.Series) string {
	if s.Exactness == series.Exact {
		return s.Kind.String()
	}
	return s.Kind.String() + ", " + s.Exactness.String()
}

// comment breaks a sentence into lines of a comment, indented by a tab.
func comment(sentence string) string {
	const width = 76
	var lines []string
	line := "\t//"
	for word := range strings.FieldsSeq(sentence) {
		if len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = "\t//"
		}
		line += " " + word
	}
	return strings.Join(append(lines, line), "\n")
}

// signalSize is the length of an array in which each signal has its number.
func signalSize(t *series.Table) int {
	return 1 + int(slices.MaxFunc(t.Series, func(a, b series.Series) int { return int(a.ID) - int(b.ID) }).ID)
}
