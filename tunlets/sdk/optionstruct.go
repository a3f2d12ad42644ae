// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// OptionsOf returns the options that the fields of the struct T stand for, in their order:
//
//	type options struct {
//		Batch  int64         `option:"batch" default:"64" min:"1" max:"4096" doc:"lines written at once"`
//		Period time.Duration `option:"period" default:"250ms" doc:"how often it looks"`
//		Mode   string        `option:"mode" choices:"fast,safe" default:"safe" doc:"how it goes about it"`
//		Symbol string        `option:"symbol" required:"true" doc:"the variable"`
//	}
//
// The type of a field is that of its option: string, bool, int64, float64, time.Duration, or
// uint64 for a number of bytes. Fields without the tag option are left out, and those of an
// embedded struct are T's own. It panics if T is no such struct: a mistake in the tunlet,
// which its first call finds.
func OptionsOf[T any]() []Option {
	var options []Option
	for _, f := range optionFields(reflect.TypeFor[T]()) {
		o := Option{
			Name: f.Tag.Get("option"), Type: f.kind, Default: f.Tag.Get("default"), Min: f.Tag.Get("min"), Max: f.Tag.Get("max"),
			Description: f.Tag.Get("doc"), Required: f.Tag.Get("required") == "true",
		}
		if choices := f.Tag.Get("choices"); choices != "" {
			o.Choices = strings.Split(choices, ",")
		}
		options = append(options, o)
	}
	return options
}

// ReadOptions returns a T, as of [OptionsOf], with the values that Configure was given. A
// field without a value is left as it is made. The errors are joined.
func ReadOptions[T any](given map[string]string) (T, error) {
	var options T
	var errs []error
	for _, f := range optionFields(reflect.TypeFor[T]()) {
		text, ok := given[f.Tag.Get("option")]
		if !ok || text == "" && f.kind != TextOption {
			continue
		}
		if err := f.set(reflect.ValueOf(&options).Elem().FieldByIndex(f.Index), text); err != nil {
			errs = append(errs, fmt.Errorf("option %s: %q is not %s", f.Tag.Get("option"), text, optionTypes()[f.kind][1]))
		}
	}
	return options, errors.Join(errs...)
}

// optionField is a field that stands for an option.
type optionField struct {
	reflect.StructField

	kind OptionType
}

// optionFields lists the fields with the tag option, and panics over what cannot be one.
func optionFields(t reflect.Type) (fields []optionField) {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("options are the fields of a struct, and %v is none", t))
	}
	for _, f := range reflect.VisibleFields(t) {
		if _, named := f.Tag.Lookup("option"); !named {
			continue
		}
		kind, known := optionKind(f.Type)
		if !known || !f.IsExported() {
			panic(fmt.Sprintf("%v.%s is no option: it has to be an exported field of type string, bool, int64, uint64, float64 or time.Duration", t, f.Name))
		}
		fields = append(fields, optionField{f, kind})
	}
	return fields
}

// optionKind is how values of a type are written.
func optionKind(t reflect.Type) (OptionType, bool) {
	if t == reflect.TypeFor[time.Duration]() {
		return DurationOption, true
	}
	kind, known := map[reflect.Kind]OptionType{
		reflect.String: TextOption, reflect.Bool: BooleanOption, reflect.Int64: IntegerOption, reflect.Float64: NumberOption, reflect.Uint64: BytesOption,
	}[t.Kind()]
	return kind, known
}

// set reads a value into the field.
func (f optionField) set(field reflect.Value, text string) error {
	switch f.kind {
	case TextOption:
		field.SetString(text)
	case BooleanOption:
		field.SetBool(text == "true")
	case IntegerOption:
		n, err := ParseInteger(text)
		field.SetInt(n)
		return err
	case NumberOption:
		n, err := ParseNumber(text)
		field.SetFloat(n)
		return err
	case DurationOption:
		d, err := time.ParseDuration(text)
		field.SetInt(int64(d))
		return err
	case BytesOption:
		n, err := ParseBytes(text)
		field.SetUint(n)
		return err
	}
	return nil
}
