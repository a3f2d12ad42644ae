// SPDX-License-Identifier: Apache-2.0

package present

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Figure is a measured number; one that could not be measured is NaN, and null
// in JSON.
type Figure float64

// MarshalJSON returns the number, or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// Goal is one measured figure beside what was promised.
type Goal struct {
	// Name says what was measured.
	Name string `json:"name"`
	// Value is the figure.
	Value Figure `json:"value"`
	// Unit is its unit; empty for ratios.
	Unit string `json:"unit,omitempty"`
	// Limit is the promise: at least it when AtLeast is set, else at most.
	Limit   Figure `json:"limit"`
	AtLeast bool   `json:"at_least"`
}

// Met reports whether the promise is kept; a figure that is not a number
// does not keep it.
func (g Goal) Met() bool {
	if g.AtLeast {
		return g.Value >= g.Limit
	}
	return g.Value <= g.Limit
}

// PrintGoals writes one line per goal.
func PrintGoals(to io.Writer, goals []Goal) {
	var table Table
	for _, g := range goals {
		verdict, relation := "MISS", "at most"
		if g.Met() {
			verdict = "PASS"
		}
		if g.AtLeast {
			relation = "at least"
		}
		table.Row(verdict+"  "+g.Name, withUnit(g.Value, g.Unit), fmt.Sprintf("%s %s", relation, withUnit(g.Limit, g.Unit)))
	}
	table.Print(to)
}

func withUnit(value Figure, unit string) string {
	if unit == "" {
		return fmt.Sprintf("%.3f", float64(value))
	}
	return Number(float64(value)) + " " + unit
}
