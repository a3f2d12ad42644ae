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

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Figure) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*f = Figure(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(f))
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

// relation is how the figure should stand to the limit.
func (g Goal) relation() string {
	if g.AtLeast {
		return "at least"
	}
	return "at most"
}

// Promise returns the limit as text, as "at most 5.00 ms".
func (g Goal) Promise() string { return g.relation() + " " + withUnit(g.Limit, g.Unit) }

// Measured returns the figure as text.
func (g Goal) Measured() string { return withUnit(g.Value, g.Unit) }

// Verdict is PASS or MISS.
func (g Goal) Verdict() string {
	if g.Met() {
		return "PASS"
	}
	return "MISS"
}

// Shortfall returns the figure, the limit, and how far they are apart as a share
// of the limit, of a goal that is missed.
func (g Goal) Shortfall() string {
	switch value, limit := float64(g.Value), float64(g.Limit); {
	case math.IsNaN(value):
		return fmt.Sprintf("not measured, promised %s", g.Promise())
	case limit == 0:
		return fmt.Sprintf("%s, promised %s", g.Measured(), g.Promise())
	default:
		return fmt.Sprintf("%s, promised %s; missed by %.1f %%", g.Measured(), g.Promise(), 100*math.Abs(value-limit)/math.Abs(limit))
	}
}

// PrintGoals writes one line per goal.
func PrintGoals(to io.Writer, goals []Goal) {
	var table Table
	for _, g := range goals {
		table.Row(g.Verdict()+"  "+g.Name, g.Measured(), g.Promise())
	}
	table.Print(to)
}

func withUnit(value Figure, unit string) string {
	switch {
	case unit == "" && math.Abs(float64(value)) >= 100:
		return fmt.Sprintf("%.0f", float64(value))
	case unit == "":
		return fmt.Sprintf("%.3f", float64(value))
	}
	return Number(float64(value)) + " " + unit
}
