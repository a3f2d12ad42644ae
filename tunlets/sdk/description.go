// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Description is a tunlet's account of itself. The Analyzer remembers it by the
// checksum of the tunlet's file, so that it need not start it to know it: the
// same file must always say the same.
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
	// MaxTries is the number of changes per process and scope of the objective
	// that may end otherwise than kept; further proposals that change the
	// process are refused. 0: three.
	MaxTries uint32
	// MinGain is the least gain worth keeping, as a ratio; 0: 0.05, five
	// per cent.
	MinGain float64
	// Priority says who gets a knob that two tunlets want: the higher one takes
	// it over, also from a change that was kept. Of equal ones, the one that
	// comes later gets a try if it predicts more than the other gained. 0: as
	// most.
	Priority int32
	// Wake says when the tunlet is of use: its process is started as soon as one
	// of these holds in one process of the application. It is told then of the
	// application, of the processes there are, and gets the samples from the
	// last one before the condition held on. Empty: it is started at once, and
	// costs every application its process.
	Wake []Wake
	// Options are what can be configured: what is given is checked before Configure
	// gets it, with the defaults added. What is not among them is refused.
	Options []Option
	// Points are the measure points that it may ask for, as far as they are known before
	// there is a program: attune tunlet check looks whether a program has them. Ids and
	// processes do not matter here.
	Points []Point
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
	// Action is what changes of it do, to which the tunlet is held: one on the same
	// variable, function or setting; values do not matter here. SetVariable("", "", 0,
	// Value{}) is any variable, for one that an option names. Zero: the setting of the
	// knob's name, by Setting or SystemSetting.
	Action Action
}

func (k Knob) proto() *attunev1.Knob {
	return &attunev1.Knob{Name: k.Name, Description: k.Description, Min: k.Min.pb, Max: k.Max.pb, Action: k.Action.pb}
}

// Check reports why a value is not within the bounds of the knob. An unknown one is.
func (k Knob) Check(v Value) error {
	if reason := attunev1.OutOfBounds(k.proto(), v.pb); reason != "" {
		return errors.New(reason)
	}
	return nil
}

func (d Description) proto() *attunev1.DescribeResponse {
	r := &attunev1.DescribeResponse{
		Name: d.Name, Version: d.Version, ApiVersion: APIVersion, Summary: d.Summary,
		Objective: &attunev1.Objective{
			Name: d.Objective.Name, Unit: d.Objective.Unit,
			LowerIsBetter: d.Objective.LowerIsBetter, Description: d.Objective.Description,
		},
		MaxTries: d.MaxTries, MinGain: d.MinGain, Priority: d.Priority,
	}
	for _, k := range d.Knobs {
		r.Knobs = append(r.Knobs, k.proto())
	}
	for _, w := range d.Wake {
		r.Wake = append(r.Wake, w.proto())
	}
	for _, p := range d.Points {
		r.Points = append(r.Points, p.proto())
	}
	for _, o := range d.Options {
		r.Options = append(r.Options, o.proto())
	}
	return r
}
