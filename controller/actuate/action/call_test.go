// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/inject"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestCall(t *testing.T) {
	i := startTuned(t)
	second, err := strconv.Atoi(i.Ask(t, "second"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		call *attunev1.CallFunction
		at   *attunev1.SafePoint
		want *attunev1.Value
		last string // what the program saw
	}{
		{
			name: "mixed arguments", last: "-7 2.5 a text 4 8589934592", want: actuatetest.Decimal(3),
			call: &attunev1.CallFunction{
				Symbol: "mixed", Result: attunev1.ResultType_RESULT_TYPE_REAL,
				Arguments: []*attunev1.Value{access.Integer(-7), actuatetest.Decimal(2.5), access.TextValue("a text"), actuatetest.Decimal(4), access.Integer(1 << 33)},
			},
		},
		{
			name: "a text that is written to", last: "!ext", want: access.Unsigned(4),
			call: &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{access.TextValue("text")}},
		},
		{
			name: "in one thread", last: "!ext", want: access.Unsigned(uint64(second)),
			call: &attunev1.CallFunction{Symbol: "thread_id"}, at: &attunev1.SafePoint{Thread: int32(second)},
		},
		{
			name: "six texts", last: "!", want: access.Unsigned(1),
			call: &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{
				access.TextValue("x"), access.TextValue(strings.Repeat("y", 600)), access.TextValue(""), access.TextValue("z"), access.TextValue("z"), access.TextValue("z"),
			}},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.call.Object = "tuned"
			got := i.Actuator.Apply(t.Context(), i.Process, &attunev1.Change{Id: row.name, Action: actuatetest.CallFunction(row.call), SafePoint: row.at})
			if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(access.WayStopped) || got.GetStoppedNanos() == 0 {
				t.Fatal(got)
			}
			if value := got.GetNewValue(); value.GetReal() != row.want.GetReal() || value.GetUnsigned() != row.want.GetUnsigned() {
				t.Errorf("returned %v, want %v", value, row.want)
			}
			if last := i.Ask(t, "last"); last != row.last {
				t.Errorf("the program saw %q, want %q", last, row.last)
			}
		})
	}
}

func TestCallRefusals(t *testing.T) {
	i := startTuned(t)
	hook := &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_NEXT_HOOK}
	for _, row := range []struct {
		name   string
		call   *attunev1.CallFunction
		at     *attunev1.SafePoint
		reason string
	}{
		{"no such function", &attunev1.CallFunction{Symbol: "mixd"}, nil, "close to it: mixed"},
		{"seven arguments", &attunev1.CallFunction{Symbol: "spoil", Arguments: make([]*attunev1.Value, 7)}, nil, "at most 6"},
		{"argument without a value", &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{{}}}, nil, "integers, addresses"},
		{"texts too long", &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{access.TextValue(strings.Repeat("x", inject.MaxCode))}}, nil, "too long"},
		{"expected of nothing", &attunev1.CallFunction{Symbol: "spoil", Result: attunev1.ResultType_RESULT_TYPE_NONE, Expect: access.Integer(1)}, nil, "returns nothing"},
		{"a hook without DMLib", &attunev1.CallFunction{Symbol: "thread_id"}, hook, "hook of DMLib"},
		{"a thread that is none", &attunev1.CallFunction{Symbol: "thread_id"}, &attunev1.SafePoint{Thread: 1}, "no thread 1"},
	} {
		row.call.Object = "tuned"
		got := i.Actuator.Apply(t.Context(), i.Process, &attunev1.Change{Id: "c", Action: actuatetest.CallFunction(row.call), SafePoint: row.at})
		if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want refused with %q", row.name, got, row.reason)
		}
	}
	if got := i.Ask(t, "last"); got != "!othing" {
		t.Errorf("something was called: %s", got)
	}
}
