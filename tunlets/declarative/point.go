// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// point is a measure point that is asked for while there is the symptom.
type point struct {
	id   string
	spec sdk.Point // without id and processes
	// until is what ends what the point begins, in the same thread; nil: hits are
	// counted.
	until *sdk.Point
	// optional: without it the rest can be judged all the same.
	optional bool
}

// point reads one. What is watched is named by one of the three first fields.
func (p *parser) point(n *yaml.Node, d *Definition) {
	var at point
	var function, value, endValue string
	var timed bool
	p.section(n, "a point",
		field{"id", true, p.name("id", `^[a-z][a-z0-9_]*$`, "lower case letters, digits and underscores", &at.id)},
		field{"probe", false, p.probe("probe", &at.spec, &value)},
		field{"hook", false, p.text("hook", &at.spec.Hook)},
		field{"function", false, p.text("function", &function)},
		field{"until", false, func(n *yaml.Node) {
			at.until = &sdk.Point{}
			p.probe("until", at.until, &endValue)(n)
		}},
		field{"object", false, p.pattern("object", &at.spec.Object)},
		field{"parameter", false, p.count("parameter", &at.spec.Parameter, 5)},
		field{"min_value", false, p.bytes("min_value", &at.spec.MinValue)},
		field{"max_value", false, p.bytes("max_value", &at.spec.MaxValue)},
		field{"time", false, p.truth("time", &timed)},
		field{"optional", false, p.truth("optional", &at.optional)},
	)
	if function != "" {
		at.spec.Symbols = []string{function}
	}
	if timed {
		at.spec.Place = sdk.Both
	}
	if at.until != nil { // the times of single hits are what is needed
		at.spec.Delivery, at.until.Delivery = sdk.DeliverEvents, sdk.DeliverEvents
	}
	p.checkPoint(n, d, &at)
	if at.until != nil && value+endValue != "" {
		p.wrong(n.Line, "a point: the value of one with until is the time from one to the other: leave sum and %%time out")
	}
	d.points = append(d.points, at)
}

// checkPoint reports what the fields of a point do not say together.
func (p *parser) checkPoint(n *yaml.Node, d *Definition, at *point) {
	probe := fieldOf(n, "probe") != nil
	targets := 0
	for _, given := range []bool{probe, at.spec.Hook != "", fieldOf(n, "function") != nil} {
		if given {
			targets++
		}
	}
	if targets != 1 {
		p.wrong(n.Line, "a point: want one of probe, hook and function")
	}
	for _, name := range []string{"object", "parameter", "min_value", "max_value", "time"} {
		if f := fieldOf(n, name); f != nil && probe {
			p.wrong(f.Line, "a point: %s stands in the text of a probe: docs/reference/probes.md", name)
		}
	}
	for _, name := range []string{"object", "parameter"} {
		if f := fieldOf(n, name); f != nil && at.spec.Hook != "" {
			p.wrong(f.Line, "a point: a hook has no %s: its calls are those of all objects, and its value is its own; write function: %s", name, at.spec.Hook)
		}
	}
	if at.spec.MaxValue > 0 && at.spec.MaxValue < at.spec.MinValue {
		p.wrong(n.Line, "a point: max_value is less than min_value: nothing would count")
	}
	for _, other := range d.points {
		if other.id == at.id {
			p.wrong(n.Line, "point %s is there already", at.id)
		}
	}
}

// fieldOf is the value of a field of a section; nil: it is not given.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// probe reads a measure point in the words of `attune probe`, and what its value
// is called, if it has one.
func (p *parser) probe(what string, to *sdk.Point, value *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		read, err := pointtext.Parse(n.Value)
		if err == nil && read.Spec.GetDelivery() != attunev1.Delivery_DELIVERY_AGGREGATE {
			err = errors.New("a tunlet in YAML gets no single hits: leave take, each and every out; sum VALUE adds a value up")
		}
		if err == nil && read.Spec.GetKeyCapture() != "" {
			err = errors.New("a tunlet in YAML gets no sums by key: leave by out")
		}
		if err != nil {
			p.wrong(n.Line, "%s: %v", what, err)
			return
		}
		*to = sdk.PointFrom(read.Spec)
		to.ID, *value = "", read.Value
	}
}

// asks are the measure points to ask for, by their ids in one process: after a change was
// kept, those of the objective.
func (d *Definition) asks(kept bool) iter.Seq2[string, sdk.Point] {
	return func(yield func(string, sdk.Point) bool) {
		for _, p := range d.points {
			if kept && !d.objective.uses(namePoint+p.id+".") {
				continue
			}
			if !yield(p.id, p.spec) || p.until != nil && !yield(p.id+endSuffix, *p.until) {
				return
			}
		}
	}
}

// needs are the details that are read, likewise.
func (d *Definition) needs(kept bool) []sdk.Detail {
	if kept {
		return d.objective.details()
	}
	return d.details
}

// optional says whether a point can be done without.
func (d *Definition) optional(id string) bool {
	return slices.ContainsFunc(d.points, func(p point) bool { return p.id == id && p.optional })
}
