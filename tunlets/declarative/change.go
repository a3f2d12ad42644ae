// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// change is one of the changes that are proposed together.
type change struct {
	knob sdk.Knob
	to   expression
	make func(sdk.Value) sdk.Action
	// variable says that a variable is changed, and real that it is a floating-point number.
	// Others, settings and knobs take whole numbers.
	variable, real bool
	// each: the change is made in each item of a kind of details for which where
	// holds, if that is given; else it is made in the process.
	each  *series.Table
	where expression
}

// details are the kinds of details that the change needs.
func (c *change) details() (kinds []sdk.Detail) {
	if c.each != nil {
		kinds = append(kinds, c.each.ID)
	}
	return append(kinds, append(c.to.details(), c.where.details()...)...)
}

// changedTables are the tables whose rows are of what can be changed, by the name of a
// row: threads and descriptors.
func changedTables() map[string]*series.Table {
	out := itemTables()
	maps.DeleteFunc(out, func(_ string, t *series.Table) bool {
		return t.Of != attunev1.SubjectKind_SUBJECT_KIND_THREAD && t.Of != attunev1.SubjectKind_SUBJECT_KIND_DESCRIPTOR
	})
	return out
}

// knobsOf is what the names of settings of a row's subject begin with.
func knobsOf(t *series.Table) string {
	if t.Of == attunev1.SubjectKind_SUBJECT_KIND_THREAD {
		return "thread."
	}
	return t.Row() + "."
}

// maxPlaces bounds the items that one change is made in at one time.
const maxPlaces = 64

// proposed lists what to change in a process, in one item each or as a whole, with why
// there is nothing; both empty: where holds for none.
func (c *change) proposed(k knowledge) (out []sdk.Change, reason string) {
	knows := []knowledge{k}
	if c.each != nil {
		knows = nil
		list, _ := k.watch.details.kinds[c.each.ID].list()
		for _, item := range list {
			of := k
			of.item = item
			knows = append(knows, of)
		}
	}
	for _, k := range knows {
		if c.where.given() && !c.where.holds(k) || len(out) == maxPlaces {
			continue
		}
		v, ok := c.to.value(k)
		to := c.value(v)
		if !ok || !to.Known() {
			return nil, "no value for " + c.knob.Name
		}
		if err := c.fraction(v); err != nil {
			return nil, err.Error()
		}
		change := sdk.Change{Knob: c.knob.Name, Process: k.watch.handle(), Action: c.make(to)}
		if c.each != nil {
			change.Knob, change.Action = "", sdk.SystemSettingOn(c.knob.Name, int32(k.item.now.Number), to)
		}
		out = append(out, change)
	}
	return out, ""
}

// change reads one. What is changed is named by one of the three first fields.
func (c *compilers) change(n *yaml.Node, d *Definition) {
	p, ch := c.after, change{}
	var setting, system string
	var variable, to, where *yaml.Node
	keep := func(at **yaml.Node) func(*yaml.Node) { return func(n *yaml.Node) { *at = n } }
	p.section(n, "a change",
		field{"setting", false, p.text("setting", &setting)},
		field{"system", false, p.text("system", &system)},
		field{"variable", false, keep(&variable)},
		field{"each", false, choice(p.parser, "each", &ch.each, changedTables())},
		field{"where", false, keep(&where)},
		field{"to", true, keep(&to)},
		field{"description", true, p.text("description", &ch.knob.Description)},
		field{"min", false, p.bound("min", &ch.knob.Min)},
		field{"max", false, p.bound("max", &ch.knob.Max)},
	)
	switch {
	case setting != "" && system == "" && variable == nil:
		ch.knob.Name, ch.make = setting, func(v sdk.Value) sdk.Action { return sdk.Setting(setting, v) }
	case system != "" && setting == "" && variable == nil:
		ch.knob.Name, ch.make = system, func(v sdk.Value) sdk.Action { return sdk.SystemSetting(system, v) }
	case variable != nil && setting == "" && system == "":
		p.variable(variable, &ch)
	default:
		p.wrong(n.Line, "a change: want one of setting, system and variable")
	}
	if ch.make != nil {
		ch.knob.Action = ch.make(ch.value(0.0)) // 0 tells the type, see `attune tunlet check`
	}
	c.values(n, &ch, to, where)
	if slices.ContainsFunc(d.changes, func(o change) bool { return o.knob.Name == ch.knob.Name }) {
		p.wrong(n.Line, "%s is changed twice", ch.knob.Name)
	}
	d.changes = append(d.changes, ch)
	d.description.Knobs = append(d.description.Knobs, ch.knob)
}

// values reads the expressions of a change, which may name the item that they
// are about.
func (c *compilers) values(n *yaml.Node, ch *change, to, where *yaml.Node) {
	p := c.after
	switch {
	case ch.each == nil && where != nil:
		p.wrong(where.Line, "where: say of what, by each: %s", strings.Join(sortedKeys(changedTables()), ", "))
		return
	case ch.each != nil && !strings.HasPrefix(ch.knob.Name, knobsOf(ch.each)):
		p.wrong(n.Line, "a change of each %s: want a system setting %s…: docs/reference/knobs.md", ch.each.Row(), knobsOf(ch.each))
		return
	case ch.each != nil:
		var err error
		if p, err = p.with(itemName(ch.each)); err != nil {
			p.wrong(n.Line, "%v", err)
			return
		}
	}
	if to != nil {
		want := aValue()
		if ch.real {
			want = aNumber()
		}
		p.expression("to", want, &ch.to)(to)
		p.checkBounds(n, to, ch)
	}
	if where != nil {
		p.expression("where", aCondition(), &ch.where)(where)
	}
}

// checkBounds reports bounds that no value is within, and a constant that is beyond them.
func (p *parser) checkBounds(n, to *yaml.Node, ch *change) {
	if err := ch.knob.Check(ch.knob.Min); err != nil {
		p.wrong(n.Line, "min and max: %v", err)
		return
	}
	if !ch.to.given() || len(ch.to.names) > 0 {
		return // it depends on what is known then
	}
	v, _ := ch.to.value(knowledge{})
	if !ch.value(v).Known() {
		p.wrong(to.Line, "to: %q is nothing that can be set: want a finite number, and an integer of 64 bits at most", ch.to.text)
	} else if err := ch.fraction(v); err != nil {
		p.wrong(to.Line, "to: %v", err)
	} else if err := ch.knob.Check(ch.value(v)); err != nil {
		p.wrong(to.Line, "to: %v", err)
	}
}

// variable reads a global variable of the program or one of its libraries. The
// knob has the name of the symbol.
func (p *parser) variable(n *yaml.Node, ch *change) {
	var object, symbol string
	var size uint32
	p.section(n, "a variable",
		field{"object", true, p.pattern("object", &object)},
		field{"symbol", true, p.text("symbol", &symbol)},
		field{"size", true, choice(p, "size", &size, map[string]uint32{"1": 1, "2": 2, "4": 4, "8": 8})},
		field{"type", false, choice(p, "type", &ch.real, map[string]bool{"integer": false, "real": true})},
	)
	if ch.real && size > 0 && size < 4 {
		p.wrong(n.Line, "a variable: one of type real has 4 or 8 bytes, not %d", size)
	}
	ch.knob.Name, ch.variable = symbol, true
	ch.make = func(v sdk.Value) sdk.Action { return sdk.SetVariable(object, symbol, size, v) }
}

// bound reads a bound of a knob, with KiB, MiB or GiB behind it or nothing.
func (p *parser) bound(what string, to *sdk.Value) func(*yaml.Node) {
	return scalar(p, what, to, func(s string) (sdk.Value, error) {
		if n, err := sdk.ParseBytes(s); err == nil {
			return sdk.Uint(n), nil
		}
		n, err := sdk.ParseNumber(s)
		if err != nil {
			return sdk.Value{}, errors.New("a number, which KiB, MiB or GiB may follow")
		}
		return sdk.Real(n), nil
	})
}
