// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestParseProbe(t *testing.T) {
	tests := map[string]struct {
		text string
		want Probe
		err  string
	}{
		"function":                 {"libc.so.6:malloc", Probe{Object: "libc.so.6", Symbol: "malloc"}, ""},
		"namespace":                {"solver:ns::Matrix::add(int)", Probe{Object: "solver", Symbol: "ns::Matrix::add(int)"}, ""},
		"pattern":                  {"lib*.so:ns::*", Probe{Object: "lib*.so", Symbol: "ns::*"}, ""},
		"static":                   {"usdt:a.so:libc:sbrk", Probe{Object: "a.so", Provider: "libc", Name: "sbrk"}, ""},
		"static, too little":       {"usdt:a.so:libc", Probe{}, "usdt:OBJECT:PROVIDER:NAME"},
		"static, too much":         {"usdt:a:b:c:d", Probe{}, "usdt:OBJECT:PROVIDER:NAME"},
		"no symbol":                {"malloc", Probe{}, "OBJECT:SYMBOL"},
		"no object":                {":malloc", Probe{}, "OBJECT:SYMBOL"},
		"namespace for object":     {"ns::f", Probe{}, "solver:ns::f"},
		"set that matches nothing": {"a:b[z-a]", Probe{}, "invalid symbol name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseProbe(test.text)
			if got != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
