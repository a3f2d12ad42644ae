// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"maps"
	"path"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/attune-hpc/attune/proto/attune/series"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// The first parts of the names that expressions may use.
const (
	nameRate     = "rate."            // and a counter: its rise per second
	nameValue    = "value."           // and a gauge: its latest value
	nameLeast    = "others.least."    // and a signal: the least among other processes
	nameGreatest = "others.greatest." // and a signal: the greatest among them
	nameCount    = "others.count"     // how many of them the tunlet is about
	nameProcess  = "process."         // and one of processNames
	nameOption   = "option."          // and an option of the file
	namePoint    = "point."           // and a point of the file, and one of pointNames
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// named is what a name in an expression stands for.
type named struct {
	kind *cel.Type
	// get returns its value, and whether that is known.
	get func(knowledge) (any, bool)
}

// vocabulary is what expressions may name.
type vocabulary map[string]named

func number(get func(knowledge) (float64, bool)) named {
	return named{cel.DoubleType, func(k knowledge) (any, bool) { return get(k) }}
}

// signalNames are those about the process and its signals.
func signalNames() vocabulary {
	v := processNames()
	v[nameCount] = number(func(k knowledge) (float64, bool) { return k.watch.others(), true })
	for _, s := range sdk.Signals() {
		if s.Gauge() {
			v[nameValue+s.String()] = number(func(k knowledge) (float64, bool) { return k.watch.window.Last(s) })
		} else {
			v[nameRate+s.String()] = number(func(k knowledge) (float64, bool) { return k.span.Rate(s) })
		}
		v[nameLeast+s.String()] = number(func(k knowledge) (float64, bool) {
			least, _, ok := k.watch.tunlet.others.among(k.watch, s)
			return least, ok
		})
		v[nameGreatest+s.String()] = number(func(k knowledge) (float64, bool) {
			_, greatest, ok := k.watch.tunlet.others.among(k.watch, s)
			return greatest, ok
		})
	}
	return v
}

func processNames() vocabulary {
	return vocabulary{
		nameProcess + "executable": {cel.StringType, func(k knowledge) (any, bool) { return path.Base(k.watch.process.Executable), true }},
		nameProcess + "command":    {cel.ListType(cel.StringType), func(k knowledge) (any, bool) { return k.watch.process.Command, true }},
		nameProcess + "host":       {cel.StringType, func(k knowledge) (any, bool) { return k.watch.process.Host, true }},
		nameProcess + "rank":       {cel.IntType, func(k knowledge) (any, bool) { return k.watch.process.Rank, true }},
		nameProcess + "cpus": {cel.IntType, func(k knowledge) (any, bool) {
			return k.watch.process.CPUsAllowed, k.watch.process.CPUsAllowed > 0
		}},
	}
}

// addOptions adds the options of a file.
func (v vocabulary) addOptions(options []sdk.Option) {
	for _, o := range options {
		kind := cel.DoubleType
		switch o.Type {
		case sdk.BooleanOption:
			kind = cel.BoolType
		case sdk.TextOption:
			kind = cel.StringType
		}
		v[nameOption+o.Name] = named{kind, func(k knowledge) (any, bool) {
			value, ok := k.watch.tunlet.options[o.Name]
			return value, ok
		}}
	}
}

// join adds further names.
func (v vocabulary) join(further vocabulary) vocabulary {
	maps.Copy(v, further)
	return v
}

// pointNames are those of the measure points of a file.
func pointNames(points []point) vocabulary {
	out := vocabulary{}
	for _, p := range points {
		for figure, of := range map[string]func(count) (float64, bool){
			"rate": func(c count) (float64, bool) { return c.hits / c.seconds, c.seconds > 0 },
			"sum":  func(c count) (float64, bool) { return c.sum / c.seconds, c.seconds > 0 },
			"mean": func(c count) (float64, bool) { return c.sum / c.hits, c.hits > 0 },
		} {
			out[namePoint+p.id+"."+figure] = number(func(k knowledge) (float64, bool) { return of(k.counts[p.id]) })
		}
	}
	return out
}

// detailNames are those of what is read only when it is asked for: lists of the rows
// of tables, and of a table with one row the fields.
func detailNames() vocabulary {
	out := vocabulary{}
	for i := range series.Tables() {
		t := &series.Tables()[i]
		if !t.Single() {
			out[t.Name] = named{cel.ListType(itemType(t)), func(k knowledge) (any, bool) { return k.watch.details.kinds[t.ID].list() }}
			continue
		}
		for _, s := range t.Series {
			out[singleName(t)+s.Label()] = named{celType(s), func(k knowledge) (any, bool) {
				return k.watch.details.kinds[t.ID].single().value(s)
			}}
		}
	}
	return out
}

// singleName is the first part of the names of a table with one row.
func singleName(t *series.Table) string { return t.Name + "." }

// instead lists what could have been meant by a name that there is not.
func (v vocabulary) instead(name string) string {
	first, _, dotted := strings.Cut(name, ".")
	var same, firsts []string
	for _, known := range sortedKeys(v) {
		begin, _, _ := strings.Cut(known, ".")
		if dotted && begin == first {
			same = append(same, known)
		}
		if strings.Contains(known, ".") {
			begin += ".…"
		}
		firsts = append(firsts, begin)
	}
	if len(same) > 0 {
		return strings.Join(same, ", ")
	}
	return strings.Join(slices.Compact(firsts), ", ")
}
