// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/proto/attune/number"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// OptionType says how an option's value is written.
type OptionType uint8

// The types of options.
const (
	// TextOption is any text.
	TextOption = OptionType(attunev1.OptionType_OPTION_TYPE_TEXT)
	// BooleanOption is true or false.
	BooleanOption = OptionType(attunev1.OptionType_OPTION_TYPE_BOOLEAN)
	// IntegerOption is a whole number; see [ParseInteger].
	IntegerOption = OptionType(attunev1.OptionType_OPTION_TYPE_INTEGER)
	// NumberOption is a number; see [ParseNumber].
	NumberOption = OptionType(attunev1.OptionType_OPTION_TYPE_NUMBER)
	// DurationOption is a time with its unit; see time.ParseDuration.
	DurationOption = OptionType(attunev1.OptionType_OPTION_TYPE_DURATION)
	// BytesOption is a number of bytes; see [ParseBytes].
	BytesOption = OptionType(attunev1.OptionType_OPTION_TYPE_BYTES)
)

// optionTypes names the types and says how their values are written.
func optionTypes() map[OptionType][2]string {
	return map[OptionType][2]string{
		TextOption:     {"text", "text"},
		BooleanOption:  {"boolean", "true or false"},
		IntegerOption:  {"integer", "a whole number"},
		NumberOption:   {"number", "a number"},
		DurationOption: {"duration", "a time with its unit, as in 250ms"},
		BytesOption:    {"bytes", "a number of bytes, as in 65536 or 64MiB"},
	}
}

// String names the type.
func (t OptionType) String() string {
	return cmp.Or(optionTypes()[t][0], fmt.Sprintf("type %d", uint8(t)))
}

// Option is something about a tunlet that can be configured.
type Option struct {
	// Name, as in attune tunlet info: lower case letters, digits and underscores.
	Name string
	// Type says how its value is written.
	Type OptionType
	// Default is its value if none is given; empty: the tunlet knows what to do
	// without.
	Default string
	// Min and Max bound what has an order, in the notation of values; empty: no
	// bound.
	Min, Max string
	// Choices are the values allowed; none: any.
	Choices []string
	// Description says in a sentence what it does.
	Description string
	// Required says that without a value the tunlet is of no use: it is not even
	// started then. For a tunlet that must be told about the program, such as the
	// name of a variable.
	Required bool
}

// OptionFrom is the option that a message describes.
func OptionFrom(o *attunev1.Option) Option {
	return Option{
		Name: o.GetName(), Type: OptionType(o.GetType()), Default: o.GetDefault(), Min: o.GetMin(), Max: o.GetMax(),
		Choices: o.GetChoices(), Description: o.GetDescription(), Required: o.GetRequired(),
	}
}

func (o Option) proto() *attunev1.Option {
	return &attunev1.Option{
		Name: o.Name, Type: attunev1.OptionType(o.Type), Default: o.Default, Min: o.Min, Max: o.Max,
		Choices: o.Choices, Description: o.Description, Required: o.Required,
	}
}

// Validate reports what is wrong with the option itself.
func (o Option) Validate() error {
	if _, known := optionTypes()[o.Type]; !known {
		return fmt.Errorf("option %s: %v is not known", o.Name, o.Type)
	}
	for _, v := range append([]string{o.Default, o.Min, o.Max}, o.Choices...) {
		if v == "" {
			continue
		}
		if err := o.Check(v); err != nil {
			return fmt.Errorf("its own account of itself: %w", err)
		}
	}
	return nil
}

// Check reports why a value is not one of the option's.
func (o Option) Check(value string) error {
	refuse := func(want string) error { return fmt.Errorf("option %s: %q is not %s", o.Name, value, want) }
	v, err := o.ordered(value)
	if err != nil {
		return refuse(optionTypes()[o.Type][1])
	}
	if len(o.Choices) > 0 && !slices.Contains(o.Choices, value) {
		return refuse("one of " + strings.Join(o.Choices, ", "))
	}
	if least, err := o.ordered(o.Min); o.Min != "" && err == nil && v < least {
		return refuse("at least " + o.Min)
	}
	if most, err := o.ordered(o.Max); o.Max != "" && err == nil && v > most {
		return refuse("at most " + o.Max)
	}
	return nil
}

// ordered is where a value stands among others of its type; 0 where there is no
// order.
func (o Option) ordered(value string) (float64, error) {
	switch o.Type {
	case BooleanOption:
		if value != "true" && value != "false" {
			return 0, strconv.ErrSyntax
		}
	case IntegerOption:
		n, err := ParseInteger(value)
		return float64(n), err
	case NumberOption:
		return ParseNumber(value)
	case DurationOption:
		d, err := time.ParseDuration(value)
		return d.Seconds(), err
	case BytesOption:
		n, err := ParseBytes(value)
		return float64(n), err
	}
	return 0, nil
}

// SettleOptions checks what was given for options against what there is, and
// adds the defaults. The errors are for people, all of them joined into one.
func SettleOptions(options []Option, given map[string]string) (map[string]string, error) {
	settled := make(map[string]string, len(options))
	var names []string
	var errs []error
	for _, o := range options {
		names = append(names, o.Name)
		value, ok := given[o.Name]
		switch {
		case ok:
			settled[o.Name] = value
			errs = append(errs, o.Check(value))
		case o.Default != "":
			settled[o.Name] = o.Default
		}
	}
	for name := range given {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("option %q: unknown; there is %s", name, cmp.Or(strings.Join(names, ", "), "none")))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return settled, errors.Join(errs...)
}

// Unset lists the options without which a tunlet is of no use, and that settled
// ones give no value to.
func Unset(options []Option, settled map[string]string) (names []string) {
	for _, o := range options {
		if o.Required && settled[o.Name] == "" {
			names = append(names, o.Name)
		}
	}
	return names
}

// ParseInteger reads the value of an IntegerOption.
func ParseInteger(value string) (int64, error) { return strconv.ParseInt(value, 10, 64) }

// ParseNumber reads the value of a NumberOption: finite.
func ParseNumber(value string) (float64, error) { return number.Parse(value) }

// ParseBytes reads the value of a BytesOption: a number, with KiB, MiB, GiB or TiB directly
// behind it or nothing. K, M, G and T mean the same; KB, MB, GB and TB are thousands.
func ParseBytes(value string) (uint64, error) { return number.ParseBytes(value) }
