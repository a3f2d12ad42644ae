// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestProbesAskForTheirFunctions(t *testing.T) {
	function := func(object, symbol string, dynamic bool) *attunev1.MeasurePoint {
		return &attunev1.MeasurePoint{
			Id: object + ":" + symbol,
			Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{
				Object: object, Symbols: []string{symbol}, DynamicCallsOnly: dynamic,
			}},
			Place: attunev1.Place_PLACE_ENTRY, Delivery: attunev1.Delivery_DELIVERY_AGGREGATE,
		}
	}
	p := newProbes([]string{"libc.so.6:malloc", "solver:ns::step", "usdt:a.so:libc:sbrk"})
	resp, err := p.Service().ApplicationStarted(context.Background(), &attunev1.ApplicationStartedRequest{})
	if err != nil {
		t.Fatal(err)
	}
	static := function("", "", false)
	static.Id = "usdt:a.so:libc:sbrk"
	static.Target = &attunev1.MeasurePoint_Usdt{Usdt: &attunev1.UsdtTarget{Object: "a.so", Provider: "libc", Name: "sbrk"}}
	want := &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{
		function("libc.so.6", "malloc", true), function("solver", "ns::step", false), static,
	}}
	if diff := cmp.Diff(want, resp.GetReaction(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
