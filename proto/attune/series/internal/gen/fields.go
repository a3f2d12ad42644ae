// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// fields are the series of a part of a table; part "": those that every row has.
func fields(t series.Table, part string) (out []series.Series) {
	for _, s := range t.Series {
		if s.Part == part {
			out = append(out, s)
		}
	}
	return out
}

// parts are the parts that a table has, in their order.
func parts(t series.Table) (out []string) {
	for _, s := range t.Series {
		if s.Part != "" && !slices.Contains(out, s.Part) {
			out = append(out, s.Part)
		}
	}
	return out
}

// goType is the type of a series in Go.
func goType(s series.Series) string {
	switch {
	case s.Kind == series.KindNumber:
		return "int"
	case s.Kind == series.KindText:
		return "string"
	case s.Kind == series.KindTruth:
		return "bool"
	case s.Unit.Time() > 0:
		return "time.Duration"
	case s.Unit == series.Millionths:
		return "float64"
	}
	return "uint64"
}

// duration is the unit of a time in Go.
func duration(u series.Unit) string {
	return map[series.Unit]string{
		series.Nanoseconds: "time.Nanosecond", series.Microseconds: "time.Microsecond", series.Milliseconds: "time.Millisecond",
	}[u]
}

// write is the statement that adds a field of x to cells c.
func write(x string, s series.Series) string {
	field := x + "." + goName(s.Label())
	set := fmt.Sprintf("c.setNumber(%d, ", s.ID)
	switch goType(s) {
	case "string":
		return fmt.Sprintf("c.setText(%d, %s)", s.ID, field)
	case "bool":
		return fmt.Sprintf("c.setTruth(%d, %s)", s.ID, field)
	case "time.Duration":
		return fmt.Sprintf("%suint64(%s/%s))", set, field, duration(s.Unit))
	case "float64":
		return fmt.Sprintf("%suint64(%s*1e6))", set, field)
	}
	return set + field + ")"
}

// read is the case that sets a field of x from value.
func read(x string, s series.Series) string {
	if s.Part != "" {
		x += "." + part(s.Part) + "()"
	}
	value := "value"
	switch goType(s) {
	case "bool":
		value = "value != 0"
	case "time.Duration":
		value = "time.Duration(value) * " + duration(s.Unit)
	case "float64":
		value = "float64(value) / 1e6"
	}
	return fmt.Sprintf("case %d:\n%s.%s = %s", s.ID, x, goName(s.Label()), value)
}

// subject are the number and the life of the subject of a row x.
func subject(t series.Table) string {
	number, life := "0", "0"
	for _, s := range t.Series {
		switch s.Kind {
		case series.KindNumber:
			number = "int64(x." + goName(s.Label()) + ")"
		case series.KindLife:
			life = "x." + goName(s.Label())
		}
	}
	return number + ", " + life
}

// part is the name of the method that makes a part: hardwarePart.
func part(name string) string { return name + "Part" }

// ofKind are the series that travel as texts, or as numbers.
func ofKind(t series.Table, texts bool) (out []series.Series) {
	for _, s := range t.Series {
		if s.ID != 0 && (s.Kind == series.KindText) == texts {
			out = append(out, s)
		}
	}
	return out
}

// title is a table's name at the head of a section.
func title(name string) string {
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
}
