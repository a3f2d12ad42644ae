// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckOption(t *testing.T) {
	for name, tt := range map[string]struct {
		option Option
		value  string
		want   string // in the error; empty: accepted
	}{
		"text":               {Option{Type: TextOption}, "anything at all", ""},
		"boolean":            {Option{Type: BooleanOption}, "false", ""},
		"no boolean":         {Option{Type: BooleanOption}, "yes", "not true or false"},
		"integer":            {Option{Type: IntegerOption, Min: "-3", Max: "7"}, "-3", ""},
		"no integer":         {Option{Type: IntegerOption}, "1.5", "not a whole number"},
		"integer too small":  {Option{Type: IntegerOption, Min: "-3"}, "-4", "not at least -3"},
		"number":             {Option{Type: NumberOption, Max: "0.5"}, "5e-1", ""},
		"number too great":   {Option{Type: NumberOption, Max: "0.5"}, "0.51", "not at most 0.5"},
		"infinite number":    {Option{Type: NumberOption}, "inf", "not a number"},
		"duration":           {Option{Type: DurationOption, Min: "1s"}, "90000ms", ""},
		"duration too short": {Option{Type: DurationOption, Min: "1s"}, "999ms", "not at least 1s"},
		"no duration":        {Option{Type: DurationOption}, "5", "not a time with its unit"},
		"bytes":              {Option{Type: BytesOption, Max: "1GiB"}, "1024MiB", ""},
		"bytes too many":     {Option{Type: BytesOption, Max: "1GiB"}, "1025MiB", "not at most 1GiB"},
		"bytes beyond":       {Option{Type: BytesOption}, "99999999999TiB", "not a number of bytes"},
		"another unit":       {Option{Type: BytesOption}, "5XB", "not a number of bytes"},
		"choice":             {Option{Type: TextOption, Choices: []string{"a", "b"}}, "b", ""},
		"no choice":          {Option{Type: TextOption, Choices: []string{"a", "b"}}, "c", "not one of a, b"},
	} {
		tt.option.Name = "x"
		err := tt.option.Check(tt.value)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestSettleOptions(t *testing.T) {
	options := []Option{
		{Name: "workers", Type: IntegerOption, Default: "4", Min: "1"},
		{Name: "limit", Type: BytesOption},
	}
	got, err := SettleOptions(options, map[string]string{"limit": "64MiB"})
	if diff := cmp.Diff(map[string]string{"workers": "4", "limit": "64MiB"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	_, err = SettleOptions(options, map[string]string{"workers": "0", "limits": "1"})
	want := "option \"limits\": unknown; there is workers, limit\noption workers: \"0\" is not at least 1"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestValidateOption(t *testing.T) {
	good := Option{Name: "x", Type: NumberOption, Default: "1", Min: "0", Max: "2"}
	for name, tt := range map[string]struct {
		change func(*Option)
		ok     bool
	}{
		"good":                 {func(*Option) {}, true},
		"no default":           {func(o *Option) { o.Default = "" }, true},
		"default out of range": {func(o *Option) { o.Default = "3" }, false},
		"bound of no number":   {func(o *Option) { o.Max = "much" }, false},
		"no type":              {func(o *Option) { o.Type = 0 }, false},
	} {
		o := good
		tt.change(&o)
		if err := o.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
