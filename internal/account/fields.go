// SPDX-License-Identifier: Apache-2.0

package account

import (
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
func Fields() []Field { return fieldsOf(reflect.TypeFor[Account]()) }

// RowFields returns the fields of a Row.
func RowFields() []Field { return fieldsOf(reflect.TypeFor[Row]()) }

func fieldsOf(t reflect.Type) (fields []Field) {
	for _, f := range locateFields(t, "", nil) {
		fields = append(fields, f.Field)
	}
	return fields
}

// located is a field, and where it is in the type that has it.
type located struct {
	Field
	index []int        // of the fields that lead to it, one in another
	of    reflect.Type // its own, without pointers and lists
	many  bool         // it is a list, or in one
	// zero: no pointer says whether it is known, and 0, which the document omits, means that it
	// is not.
	zero bool
}

// locateFields lists the fields of a type of this package, an object before what is in it,
// with the object that the type is in itself.
func locateFields(t reflect.Type, prefix string, in *located) (all []located) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue // of no document
		}
		field := located{Field: Field{Name: prefix + name, Unit: f.Tag.Get("unit"), Help: f.Tag.Get("jsonschema")}, index: []int{i}, of: f.Type}
		field.zero = options == "omitempty" && f.Type.Kind() != reflect.Pointer
		if in != nil {
			field.index, field.many = append(slices.Clone(in.index), i), in.many
		}
		list := false
		for field.of.Kind() == reflect.Pointer || field.of.Kind() == reflect.Slice {
			list = list || field.of.Kind() == reflect.Slice
			field.of = field.of.Elem()
		}
		field.many = field.many || list
		nested := field.of.Kind() == reflect.Struct && field.of.PkgPath() == t.PkgPath()
		field.Numeric = field.Unit != "" && field.of.Kind() != reflect.Map
		if list && nested {
			field.Name += "[]"
		}
		if all = append(all, field); nested {
			all = append(all, locateFields(field.of, field.Name+".", &field)...)
		}
	}
	return all
}

// Number returns the number that a field has in a, by its name outside of
// lists. False if it was not measured or is no number.
func (a *Account) Number(name string) (float64, bool) {
	field, known := numbers()[name]
	if !known {
		return 0, false
	}
	v := reflect.ValueOf(a).Elem()
	for _, i := range field.index {
		if v = v.Field(i); v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return 0, false
			}
			v = v.Elem()
		}
	}
	switch {
	case field.zero && v.IsZero():
		return 0, false
	case v.CanFloat():
		return v.Float(), true
	case v.CanUint():
		return float64(v.Uint()), true
	}
	return float64(v.Int()), true
}

// Note says how fields are to be read, and what measured them.
func (a *Account) Note(accuracy Accuracy, source string, fields ...string) {
	for _, field := range fields {
		a.Accuracy[field], a.Sources[field] = accuracy, source
	}
}

// numbers is where the fields with numbers are, by name: looking for them takes as
// long as all else that is done with an account.
var numbers = sync.OnceValue(func() map[string]located {
	fields := make(map[string]located)
	for _, f := range locateFields(reflect.TypeFor[Account](), "", nil) {
		if zero := reflect.Zero(f.of); !f.many && (zero.CanFloat() || zero.CanUint() || zero.CanInt()) {
			fields[f.Name] = f
		}
	}
	return fields
})
