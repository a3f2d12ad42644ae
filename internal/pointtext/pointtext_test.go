// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestParse(t *testing.T) {
	const write = `function {object: "libc.so.6" symbols: "write" dynamic_calls_only: true}`
	tests := []struct{ text, want, value string }{
		{"libc.so.6:write", write + `place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"solver:ns::Matrix::add(int, unsigned long)", `function {object: "solver" symbols: "ns::Matrix::add(int, unsigned long)"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"solver:f(if (anonymous namespace)::x)", `function {object: "solver" symbols: "f(if (anonymous namespace)::x)"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"solver:gopkg.in/yaml%2ev3.f", `function {object: "solver" symbols: "gopkg.in/yaml%2ev3.f"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"main.solve", `function {symbols: "main.solve" one_object: true} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"main.(*T).sortRows", `function {symbols: "main.(*T).sortRows" one_object: true} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"my.solver:f", `function {object: "my.solver" symbols: "f"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"libcrypto.so.1.0.2k:f", `function {object: "libcrypto.so.1.0.2k" symbols: "f" dynamic_calls_only: true} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"libmpi*.so*:f", `function {object: "libmpi*.so*" symbols: "f" dynamic_calls_only: true} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"malloc", `function {symbols: "malloc" one_object: true} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"ns::f(int, a::b) take arg0", `function {symbols: "ns::f(int, a::b)" one_object: true} place: PLACE_ENTRY delivery: DELIVERY_EVENT parameter: 0`, "arg0"},
		{"usdt:a.so:libc:sbrk", `usdt {object: "a.so" provider: "libc" name: "sbrk"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE`, ""},
		{"solver:f%time", `function {object: "solver" symbols: "f"} place: PLACE_BOTH delivery: DELIVERY_AGGREGATE`, "time"},
		{"libc.so.6:write each", write + `place: PLACE_ENTRY delivery: DELIVERY_EVENT`, ""},
		{"libc.so.6:write each coarse", write + `place: PLACE_ENTRY delivery: DELIVERY_EVENT coarse_time: true`, ""},
		// What the point's own value can say needs no captures.
		{"libc.so.6:write take arg2", write + `place: PLACE_ENTRY delivery: DELIVERY_EVENT parameter: 2`, "arg2"},
		{"libc.so.6:write sum n=arg2 if n >= 4K", write + `place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE parameter: 2 min_value: 4096`, "n"},
		{"libc.so.6:write if arg2 > 0x10 and arg2 <= 100 every 100", write + `place: PLACE_ENTRY delivery: DELIVERY_SAMPLED sample_every: 100 parameter: 2 min_value: 17 max_value: 100`, ""},
		// What it cannot say.
		{"libc.so.6:write if arg2 == 0", write + `place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE
			captures {name: "arg2" parameter: 2} predicates {capture: "arg2" comparison: COMPARISON_EQUAL operand {unsigned: 0}}`, ""},
		{"libc.so.6:write take fd=arg0:int, arg1:str(32) if fd != 2 and arg2 & 0xf != 0", write + `place: PLACE_ENTRY delivery: DELIVERY_EVENT
			captures {name: "fd" parameter: 0 type: CAPTURE_TYPE_I32}
			captures {name: "arg1" parameter: 1 type: CAPTURE_TYPE_STRING string_limit: 32}
			captures {name: "arg2" parameter: 2}
			predicates {capture: "fd" comparison: COMPARISON_NOT_EQUAL operand {unsigned: 2}}
			predicates {capture: "arg2" mask: 15 comparison: COMPARISON_NOT_EQUAL operand {unsigned: 0}}`, ""},
		{"libc.so.6:write sum arg2 by arg0 keys 16", write + `place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE
			captures {name: "arg2" parameter: 2} captures {name: "arg0" parameter: 0} value_capture: "arg2" key_capture: "arg0" max_keys: 16`, "arg2"},
		{"libc.so.6:write%return take ret if ret < -1", write + `place: PLACE_EXIT delivery: DELIVERY_EVENT
			captures {name: "ret" returned: true type: CAPTURE_TYPE_I64} value_capture: "ret"
			predicates {capture: "ret" comparison: COMPARISON_LESS operand {integer: -1}}`, "ret"},
		{"a:f take arg0->8->16+4:i32, *arg1, @total:f64, @queue+8, tid", `function {object: "a" symbols: "f"} place: PLACE_ENTRY delivery: DELIVERY_EVENT
			captures {name: "arg0->8->16+4" parameter: 0 dereference: [8, 20] type: CAPTURE_TYPE_I32}
			captures {name: "*arg1" parameter: 1 dereference: 0}
			captures {name: "@total" global {symbol: "total"} dereference: 0 type: CAPTURE_TYPE_F64}
			captures {name: "@queue+8" global {symbol: "queue"} dereference: 8}
			captures {name: "tid" context: CAPTURE_CONTEXT_THREAD}`, ""},
		{"a:f sum global_sendwork.ntuples by request->parts[2].id", `function {object: "a" symbols: "f"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE
			captures {name: "global_sendwork.ntuples" path: "global_sendwork.ntuples"}
			captures {name: "request->parts[2].id" path: "request->parts[2].id"}
			value_capture: "global_sendwork.ntuples" key_capture: "request->parts[2].id"`, "global_sendwork.ntuples"},
		{"a:f if arg0:f64 > 1.5", `function {object: "a" symbols: "f"} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE
			captures {name: "arg0" parameter: 0 type: CAPTURE_TYPE_F64} predicates {capture: "arg0" comparison: COMPARISON_GREATER operand {real: 1.5}}`, ""},
		{"main.find by name=arg1:gostr(9)", `function {symbols: "main.find" one_object: true} place: PLACE_ENTRY delivery: DELIVERY_AGGREGATE
			captures {name: "name" parameter: 1 type: CAPTURE_TYPE_SIZED_STRING string_limit: 9} key_capture: "name"`, ""},
		{"a:f%time by stack keys 9", `function {object: "a" symbols: "f"} place: PLACE_BOTH delivery: DELIVERY_AGGREGATE
			captures {name: "stack" context: CAPTURE_CONTEXT_STACK} key_capture: "stack" max_keys: 9`, "time"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			var want attunev1.MeasurePoint
			if err := prototext.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			want.Id = test.text
			got, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got.Spec, protocmp.Transform()); diff != "" || got.Value != test.value {
				t.Errorf("value %q, %s", got.Value, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":                      {"", "OBJECT:FUNCTION"},
		"no symbol":                    {"libc.so.6", "OBJECT:FUNCTION"},
		"no object":                    {":malloc", "OBJECT:FUNCTION"},
		"stray word":                   {"malloc taek arg0", "do you mean take?"},
		"stray word, demangled":        {"ns::f taek arg0", "do you mean take?"},
		"set that matches nothing":     {"a:b[z-a]", "invalid symbol name"},
		"static, too little":           {"usdt:a.so:libc", "usdt:OBJECT:PROVIDER:NAME"},
		"static, too much":             {"usdt:a:b:c:d", "usdt:OBJECT:PROVIDER:NAME"},
		"name in a static probe":       {"usdt:a:b:c take count", "static probe"},
		"place":                        {"a:f%exit", "%return"},
		"result at the entry":          {"a:f take ret", "%return"},
		"word behind a name":           {"libc.so.6:write tkea arg0", `unknown word "tkea" at column 17: a clause begins with take, if, every, each, by, sum; do you mean take?`},
		"word behind a place":          {"a:f%time evry 5", "do you mean every?"},
		"word behind a static probe":   {"usdt:a:b:c tak arg0", "do you mean take?"},
		"word that is like none":       {"a:f whenever", `unknown word "whenever"`},
		"word behind parameters":       {"a:ns::f(int) const tkea arg0", "do you mean take?"},
		"clause, almost":               {"a:f take arg0 evrey 2", "do you mean every?"},
		"clause":                       {"a:f take arg0 when arg1", "take, if, every"},
		"clause twice":                 {"a:f take arg0 take arg1", "twice"},
		"nothing taken":                {"a:f take", "ends where a value"},
		"comma":                        {"a:f take arg0,", "ends where a value"},
		"type":                         {"a:f take arg0:string", "i8 i16"},
		"type of a name":               {"a:f take n:int", "has its type"},
		"number of keys":               {"a:f by arg0 keys 4096", "1 to 1024"},
		"no number":                    {"a:f every", "every 100"},
		"none in zero":                 {"a:f every 0", "1 to"},
		"each and every":               {"a:f each every 2", "exclude"},
		"take and sum":                 {"a:f take arg0 sum arg1", "leave one"},
		"by and each":                  {"a:f by arg0 each", "leave one"},
		"time and sum":                 {"a:f%time sum arg0", "%return"},
		"comparison":                   {"a:f if arg0", "== != <"},
		"condition without a number":   {"a:f if arg0 > many", "a number"},
		"too great a number":           {"a:f if arg0 > 99999999999999999999", "a number"},
		"shifted out":                  {"a:f if arg0 > 17179869184G", "a number"},
		"mask":                         {"a:f if arg0 & 0 == 1", "mask"},
		"sum of a string":              {"a:f sum arg0:str", "write by arg0"},
		"stack that is taken":          {"a:f take stack", "write by stack"},
		"sum of stacks":                {"a:f sum stack by arg0", "write by stack"},
		"type of the stack":            {"a:f by stack:int", "have no type"},
		"or":                           {"a:f if arg0 > 1 or arg1 > 1", "two points"},
		"member without an address":    {"a:f take arg0+8", "->"},
		"member by name":               {"a:f take arg0->count", "offset of a member"},
		"negative offset":              {"a:f take arg0->-8", "offset of a member"},
		"index":                        {"a:f take list[x]", "an index"},
		"unclosed index":               {"a:f take list[1", "]"},
		"long string":                  {"a:f take arg0:str(1000)", "1 to 256"},
		"one name for two":             {"a:f take x=arg0, x=arg1", "two values"},
		"name that is a number":        {"a:f take 1=arg0", "a name"},
		"more than eight":              {"a:f take arg0,arg1,arg2,arg3,arg4,arg5,tid,cpu,caller", "more than 8"},
		"what is behind a named value": {"a:f take *n", "request->count"},
		"more than eight conditions":   {"a:f if tid==1" + strings.Repeat(" and tid==1", 8), "more than 8"},
		"more than four steps":         {"a:f take *****arg0", "more than 4"},
		"strange character":            {"a:f take arg0;", `";"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.text)
			if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v", got.Spec, err)
			}
		})
	}
}

// What is accepted is within the limits of the protocol, and is accepted again
// with more space.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"libc.so.6:write take fd=arg0:int, arg1:str(32) if fd != 2 and arg2 & 0xf != 0 every 100",
		"a:f%return sum ret if ret < -1.5 by arg0->8+4:i32 keys 16", "a:f(int) take @v, *arg0, n->m[1].k, tid each", "usdt:a:b:c each",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		point, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatal(err)
			}
			return
		}
		if len(point.Spec.GetCaptures()) > maxCaptures || point.Spec.GetTarget() == nil {
			t.Errorf("%v", point.Spec)
		}
		if _, err := proto.Marshal(point.Spec); err != nil {
			t.Error(err)
		}
		again, err := Parse(text + " ")
		if err != nil {
			t.Fatal(err)
		}
		again.Spec.Id = point.Spec.GetId()
		if !proto.Equal(again.Spec, point.Spec) {
			t.Errorf("%v, then %v", point.Spec, again.Spec)
		}
	})
}

// Names with blanks are names.
func TestNamesWithBlanks(t *testing.T) {
	for _, name := range []string{
		"operator new(unsigned long)", "ns::Matrix::operator bool", "std::map<int, std::less<int> >::at(int const&) const",
		"void ns::f<int>(int)", "unsigned long g<short>(short)", "(anonymous namespace)::f(int) [clone .cold]", "f(char const*) volatile &&",
	} {
		point, err := Parse("a.so:" + name + " take arg0")
		if err != nil || point.Spec.GetFunction().GetSymbols()[0] != name {
			t.Errorf("%s: %v, %v", name, point.Spec, err)
		}
	}
}
