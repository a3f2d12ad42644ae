// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// item is a row of details as expressions see it: with times in seconds and without
// their unit in the name, and counters as their rise per second since it was read
// before. All numbers are floating point, as elsewhere. What is not known of a row is
// 0 or empty; has() tells.
type item struct {
	table       *series.Table
	before, now series.Row
	seconds     float64 // between them
}

// scale is what a number is multiplied by for expressions.
func scale(s series.Series) float64 {
	switch unit := s.Unit.Time(); {
	case unit > 0:
		return unit.Seconds()
	case s.Unit == series.Millionths:
		return 1e-6
	}
	return 1
}

// value is what expressions see of a series, and whether it is known. Of a nil item
// nothing is.
func (i *item) value(s series.Series) (any, bool) {
	if i == nil {
		return nil, false
	}
	switch s.Kind {
	case series.KindNumber:
		return float64(i.now.Number), true
	case series.KindLife:
		return float64(i.now.Life), true
	case series.KindText:
		text := i.now.Text(s.ID)
		return text, text != ""
	}
	now, known := i.now.Value(s.ID)
	switch s.Kind {
	case series.KindTruth:
		return now != 0, known
	case series.KindCounter:
		before, was := i.before.Value(s.ID)
		if !was {
			return 0.0, false
		}
		return float64(now-min(now, before)) * scale(s) / i.seconds, known
	}
	return float64(now) * scale(s), known
}

// field is the series of a name.
func (i *item) field(name ref.Val) (series.Series, bool) {
	label, _ := name.Value().(string)
	return labelled(i.table, label)
}

func labelled(t *series.Table, label string) (series.Series, bool) {
	for _, s := range t.Series {
		if s.Label() == label {
			return s, true
		}
	}
	return series.Series{}, false
}

// Get returns the value of a field to CEL.
func (i *item) Get(name ref.Val) ref.Val {
	s, ok := i.field(name)
	if !ok {
		return types.NewErr("no such field '%v'", name)
	}
	v, _ := i.value(s)
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// IsSet says whether a field is known.
func (i *item) IsSet(name ref.Val) ref.Val {
	s, ok := i.field(name)
	if !ok {
		return types.NewErr("no such field '%v'", name)
	}
	_, known := i.value(s)
	return types.Bool(known)
}

// Type is the item's type in CEL.
func (i *item) Type() ref.Type { return itemType(i.table) }

// Value is the item itself.
func (i *item) Value() any { return i }

// Equal says whether it is the same item.
func (i *item) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(i)) }

// ConvertToNative returns the item, as nothing but itself.
func (i *item) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeOf(i).AssignableTo(t) {
		return i, nil
	}
	return nil, fmt.Errorf("a %s is no %v", i.table.Row(), t)
}

// ConvertToType converts the item to nothing but its own type.
func (i *item) ConvertToType(t ref.Type) ref.Val {
	if t.TypeName() == i.Type().TypeName() {
		return i
	}
	return types.NewErr("a %s is no %s", i.table.Row(), t.TypeName())
}

// itemName is the name that expressions about each row of a table may use beside
// others.
func itemName(t *series.Table) vocabulary {
	return vocabulary{t.Row(): {itemType(t), func(k knowledge) (any, bool) { return k.item, k.item != nil }}}
}

// itemTables are the tables of more than one row, by the name of a row.
func itemTables() map[string]*series.Table {
	out := map[string]*series.Table{}
	for i := range series.Tables() {
		if t := &series.Tables()[i]; !t.Single() {
			out[t.Row()] = t
		}
	}
	return out
}

// typePrefix begins the names of types of rows, so that they are none of variables.
const typePrefix = "row."

// itemType is how CEL knows the rows of a table.
func itemType(t *series.Table) *cel.Type { return cel.ObjectType(typePrefix + t.Row()) }

// tableOf is the table whose rows are of a type; nil: it is another type.
func tableOf(typeName string) *series.Table {
	row, ok := strings.CutPrefix(typeName, typePrefix)
	if !ok {
		return nil
	}
	return itemTables()[row]
}

// itemTypes tells CEL of the rows of all tables.
type itemTypes struct{ types.Provider }

// withItems is the option of an environment that knows items.
func withItems(env *cel.Env) (*cel.Env, error) {
	return cel.CustomTypeProvider(itemTypes{env.CELTypeProvider()})(env)
}

// FindStructType finds the type of a row.
func (p itemTypes) FindStructType(name string) (*types.Type, bool) {
	if t := tableOf(name); t != nil {
		return types.NewTypeTypeWithParam(itemType(t)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames lists the fields of a row.
func (p itemTypes) FindStructFieldNames(name string) ([]string, bool) {
	if t := tableOf(name); t != nil {
		return labels(t), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType finds a field of a row.
func (p itemTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	t := tableOf(name)
	if t == nil {
		return p.Provider.FindStructFieldType(name, field)
	}
	s, ok := labelled(t, field)
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: celType(s)}, true
}

// celType is the type that expressions see a series as.
func celType(s series.Series) *cel.Type {
	switch s.Kind {
	case series.KindText:
		return cel.StringType
	case series.KindTruth:
		return cel.BoolType
	}
	return cel.DoubleType
}

// labels are the names of a table's fields.
func labels(t *series.Table) (names []string) {
	for _, s := range t.Series {
		names = append(names, s.Label())
	}
	return names
}
