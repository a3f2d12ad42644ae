// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
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
		if name == "-" {
			continue // of no document
		}
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
	path, known := numbers()[name]
	if !known {
		return 0, false
	}
	v := reflect.ValueOf(a).Elem()
	for _, i := range path {
		if v = v.Field(i); v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return 0, false
			}
			v = v.Elem()
		}
	}
	switch {
	case v.CanFloat():
		return v.Float(), true
	case v.CanUint():
		return float64(v.Uint()), true
	}
	return float64(v.Int()), true
}

// numbers is where the fields with numbers are, by name: looking for them takes as
// long as all else that is done with an account.
var numbers = sync.OnceValue(func() map[string][]int {
	paths := make(map[string][]int)
	var walk func(t reflect.Type, prefix string, path []int)
	walk = func(t reflect.Type, prefix string, path []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			here := append(slices.Clone(path), i)
			switch {
			case inner.Kind() == reflect.Struct && inner.PkgPath() == t.PkgPath():
				walk(inner, prefix+name+".", here)
			case reflect.Zero(inner).CanFloat(), reflect.Zero(inner).CanUint(), reflect.Zero(inner).CanInt():
				paths[prefix+name] = here
			}
		}
	}
	walk(reflect.TypeFor[Account](), "", nil)
	return paths
})

// Page returns the table of fields for the reference page, in Markdown.
func Page(fields []Field) []byte {
	var out strings.Builder
	out.WriteString("| Field | Unit | What it is |\n|---|---|---|\n")
	for _, f := range fields {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", f.Name, f.Unit, f.Help)
	}
	return []byte(out.String())
}
