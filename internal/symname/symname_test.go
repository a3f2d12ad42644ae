// SPDX-License-Identifier: Apache-2.0

package symname

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	overloadInt  = "_ZN2ns1fEi"
	overloadLong = "_ZN2ns1fEl"
	multiply     = "_ZN2ns6Matrix8multiplyERKS0_"
	templated    = "_ZN2ns3maxIiEET_S1_S1_"
	hidden       = "_ZN12_GLOBAL__N_16helperEv"
	star         = "_ZN2ns6MatrixmlERKS0_"
	rustLegacy   = "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"
	rustV0       = "_RNvNtCs1234_7mycrate3foo3bar"
)

func TestNear(t *testing.T) {
	names := []string{"glibc.malloc.trim_threshold", "python.gc.threshold0", "socket.tcp_nodelay"}
	for name, want := range map[string]string{
		"malloc.trim_threshold": "glibc.malloc.trim_threshold", "socket.nodelay": "socket.tcp_nodelay",
		"python.gc.treshold0": "python.gc.threshold0", "colour": "", "": "", "malloc.": "",
	} {
		if got := strings.Join(Near(name, names, 3), " "); got != want {
			t.Errorf("near %q: %q, want %q", name, got, want)
		}
	}
}

func TestDemangle(t *testing.T) {
	tests := map[string]struct{ name, whole, function string }{
		"C":               {"malloc", "malloc", "malloc"},
		"C++":             {overloadInt, "ns::f(int)", "ns::f"},
		"substitution":    {multiply, "ns::Matrix::multiply(ns::Matrix const&)", "ns::Matrix::multiply"},
		"template":        {templated, "int ns::max<int>(int, int)", "ns::max<int>"},
		"anonymous":       {hidden, "(anonymous namespace)::helper()", "(anonymous namespace)::helper"},
		"version":         {overloadInt + "@V1", "ns::f(int)@V1", "ns::f@V1"},
		"Rust legacy":     {rustLegacy, "core::fmt::Formatter::write_str", "core::fmt::Formatter::write_str"},
		"Rust v0":         {rustV0, "mycrate::foo::bar", "mycrate::foo::bar"},
		"not well formed": {"_ZN2", "_ZN2", "_ZN2"},
		"too long":        {"_Z" + strings.Repeat("1a", maxMangled), "_Z" + strings.Repeat("1a", maxMangled), "_Z" + strings.Repeat("1a", maxMangled)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Demangle(test.name); got != test.whole {
				t.Errorf("%q, want %q", got, test.whole)
			}
			if got := Function(test.name); got != test.function {
				t.Errorf("function %q, want %q", got, test.function)
			}
		})
	}
}

func TestGrade(t *testing.T) {
	tests := map[string]struct {
		query, name string
		want        Grade
	}{
		"C":                       {"malloc", "malloc", Linker},
		"another":                 {"malloc", "calloc", None},
		"mangled":                 {overloadInt, overloadInt, Linker},
		"demangled":               {"ns::f(int)", overloadInt, Whole},
		"other overload":          {"ns::f(int)", overloadLong, None},
		"without parameters":      {"ns::f", overloadLong, NoParameters},
		"template":                {"ns::max<int>", templated, NoParameters},
		"without arguments":       {"ns::max", templated, Generic},
		"whole template":          {"int ns::max<int>(int, int)", templated, Whole},
		"anonymous":               {"(anonymous namespace)::helper", hidden, NoParameters},
		"operator is no pattern":  {"ns::Matrix::operator*", star, NoParameters},
		"pointer is no pattern":   {"g(char*)", "_Z1gPc", Whole},
		"pattern of C":            {"mem*", "memcpy", Pattern},
		"question mark":           {"mem?py", "memcpy", Pattern},
		"set":                     {"mem[a-d]py", "memcpy", Pattern},
		"negated set":             {"mem[^a-d]py", "memcpy", None},
		"escaped":                 {`mem\*`, "memcpy", None},
		"pattern of class":        {"ns::Matrix::*", multiply, Pattern},
		"pattern, other class":    {"ns::Vector::*", multiply, None},
		"pattern with parameters": {"ns::f(*)", overloadInt, Pattern},
		"all":                     {"*", "anything", Pattern},
		"std is abbreviated":      {"std::terminate", "_ZSt9terminatev", NoParameters},
		"string is abbreviated":   {"std::string::*", "_ZNSs6appendERKSs", Pattern},
		"built-in operator new":   {"operator new", "_Znwm", NoParameters},
		"Rust legacy":             {"core::fmt::Formatter::write_str", rustLegacy, Whole},
		"Rust v0":                 {"mycrate::*::bar", rustV0, Pattern},
		"Go path":                 {"github.com/*.Run", "github.com/a/b.Run", Pattern},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			q, err := Parse(test.query)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.Grade([]byte(test.name)); got != test.want {
				t.Errorf("grade %d, want %d; word %q, literal %q", got, test.want, q.word, q.literal)
			}
		})
	}
}

func TestParse(t *testing.T) {
	q, err := Parse("memcpy@@GLIBC_2.14")
	if err != nil || q.Text != "memcpy" || q.Version != "GLIBC_2.14" || q.IsPattern() {
		t.Errorf("%+v, %v", q, err)
	}
	for _, bad := range []string{"", "@V", "a\nb", "a\x00", strings.Repeat("a", maxMangled+1), "a[z-a]"} {
		if q, err := Parse(bad); err == nil && bad != "@V" {
			t.Errorf("%q: %+v", bad, q)
		}
	}
}

func TestSuggestions(t *testing.T) {
	names := []string{"malloc", "calloc", "realloc", "free", overloadInt, multiply, rustLegacy, "memalign"}
	tests := map[string]struct {
		text string
		want []string
	}{
		"typing error":    {"mallco", []string{"malloc"}},
		"case":            {"Malloc", []string{"malloc", "calloc", "realloc"}},
		"lost namespace":  {"Matrix::multiplyy", []string{"ns::Matrix::multiply"}},
		"wrong namespace": {"nz::Matrix::multiply", []string{"ns::Matrix::multiply"}},
		"Rust":            {"write_str", []string{"core::fmt::Formatter::write_str"}},
		"nothing close":   {"zzzzzzzzzz", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewSuggestions(test.text, 3)
			for _, name := range names {
				s.Add([]byte(name))
			}
			if diff := cmp.Diff(test.want, s.Names()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzQuery: whatever the query and the names, the quick look refuses nothing
// that the slow one takes.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"ns::f", "ns::*", "std::string::*", "*", "operator[]", "[", `\`, "{closure}*", "a[z-a]"} {
		for _, name := range []string{overloadInt, multiply, rustLegacy, rustV0, star, "_Znwm"} {
			f.Add(query, name)
		}
	}
	f.Fuzz(func(t *testing.T, query, name string) {
		q, err := Parse(query)
		if err != nil {
			return
		}
		quick := q.Grade([]byte(name))
		if quick == None && q.word != nil && Mangled(name) && name != q.Text {
			slow := q
			slow.word, slow.literal = nil, nil
			if got := slow.Grade([]byte(name)); got >= Generic {
				t.Errorf("%q fits %q with grade %d, but the word %q is not in it", query, name, got, q.word)
			}
		}
		NewSuggestions(query, 3).Add([]byte(name))
	})
}
