// SPDX-License-Identifier: Apache-2.0

package sdk

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Description is a tunlet's account of itself.
type Description struct {
	// Name is the tunlet's name, as in --tunlet NAME.
	Name string
	// Version is the tunlet's own version.
	Version string
	// Summary says in a sentence what problem it solves.
	Summary string
	// Objective is what its changes are judged by.
	Objective Objective
	// Knobs are all that it may ever change.
	Knobs []Knob
	// MaxTries is the number of changes per scope of the objective that may
	// end otherwise than kept; further proposals are refused. 0: three.
	MaxTries uint32
	// MinGain is the least gain worth keeping, as a ratio; 0: 0.05, five
	// per cent.
	MinGain float64
}

// Objective is a figure that tells how fast the application gets on.
type Objective struct {
	// Name, e.g. mpi_calls_per_second.
	Name string
	// Unit, e.g. 1/s.
	Unit string
	// LowerIsBetter turns the comparison round.
	LowerIsBetter bool
	// Description says in a sentence, for the report, what it stands for.
	Description string
}

// Knob is something that a tunlet may change.
type Knob struct {
	// Name, as in Change.Knob.
	Name string
	// Description says in a sentence what it does.
	Description string
	// Min and Max bound numbers; a zero Value is no bound.
	Min, Max Value
}

func (d Description) proto() *attunev1.DescribeResponse {
	r := &attunev1.DescribeResponse{
		Name: d.Name, Version: d.Version, ApiVersion: APIVersion, Summary: d.Summary,
		Objective: &attunev1.Objective{
			Name: d.Objective.Name, Unit: d.Objective.Unit,
			LowerIsBetter: d.Objective.LowerIsBetter, Description: d.Objective.Description,
		},
		MaxTries: d.MaxTries, MinGain: d.MinGain,
	}
	for _, k := range d.Knobs {
		r.Knobs = append(r.Knobs, &attunev1.Knob{
			Name: k.Name, Description: k.Description, Min: k.Min.pb, Max: k.Max.pb,
		})
	}
	return r
}
