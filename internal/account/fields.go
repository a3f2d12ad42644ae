// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"reflect"
	"strings"
)

// Field is one field of the JSON document.
type Field struct {
	// Name is the field's, with those of the objects that it is in before it:
	// memory.resident_peak_bytes. A [] marks an element of a list.
	Name string
	// Unit is what a number counts; empty for what is no number.
	Unit string
	// Help is a sentence.
	Help string
	// Numeric: it has a unit, and so an accuracy, and it can be limited.
	Numeric bool
}

// Fields returns all fields of an Account in the document's order, an object
// before what is in it.
func Fields() []Field { return fieldsOf(reflect.TypeFor[Account](), "") }

// RowFields returns the fields of a Row.
func RowFields() []Field { return fieldsOf(reflect.TypeFor[Row](), "") }

func fieldsOf(t reflect.Type, prefix string) []Field {
	var out []Field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := Field{Name: prefix + name, Unit: f.Tag.Get("unit"), Help: f.Tag.Get("jsonschema")}
		inner, list := f.Type, false
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			list = list || inner.Kind() == reflect.Slice
			inner = inner.Elem()
		}
		nested := inner.Kind() == reflect.Struct && inner.PkgPath() == t.PkgPath()
		field.Numeric = field.Unit != "" && inner.Kind() != reflect.Map
		if list && nested {
			field.Name += "[]"
		}
		out = append(out, field)
		if nested {
			out = append(out, fieldsOf(inner, field.Name+".")...)
		}
	}
	return out
}

// Number returns the number that a field has in a, by its name outside of
// lists. False if it was not measured or is no number.
func (a *Account) Number(name string) (float64, bool) {
	v := reflect.ValueOf(a).Elem()
	for part := range strings.SplitSeq(name, ".") {
		if v.Kind() != reflect.Struct {
			return 0, false
		}
		v = child(v, part)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() {
			return 0, false
		}
	}
	switch {
	case v.CanFloat():
		return v.Float(), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanInt():
		return float64(v.Int()), true
	}
	return 0, false
}

// child is the member of that name in JSON; the zero Value if there is none.
func child(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// Page returns the table of fields for the reference page, in Markdown.
func Page(fields []Field) []byte {
	var out strings.Builder
	out.WriteString("| Field | Unit | What it is |\n|---|---|---|\n")
	for _, f := range fields {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", f.Name, f.Unit, f.Help)
	}
	return []byte(out.String())
}
