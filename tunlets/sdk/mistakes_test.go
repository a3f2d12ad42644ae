// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestPointCheck(t *testing.T) {
	good := sdk.Point{ID: "p", Hook: "malloc"}
	for _, tt := range []struct {
		name string
		with func(*sdk.Point)
		want string
	}{
		{"good", func(*sdk.Point) {}, ""},
		{"no id", func(p *sdk.Point) { p.ID = "" }, "it has no id"},
		{"no target", func(p *sdk.Point) { p.Hook = "" }, "0 targets"},
		{"two targets", func(p *sdk.Point) { p.Symbols = []string{"free"} }, "2 targets; want one of Hook, Symbols and Static"},
		{"nothing counts", func(p *sdk.Point) { p.MinValue, p.MaxValue = 5, 4 }, "no value is at least 5 and at most 4"},
		{"no such capture", func(p *sdk.Point) { p.Key = "k" }, `it does not have the capture "k"`},
		{"no such condition", func(p *sdk.Point) { p.Where = []sdk.Condition{{Capture: "w"}} }, `a condition is about capture "w"`},
	} {
		p := good
		tt.with(&p)
		err := p.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// mistaken asks for what cannot be, each time.
type mistaken struct{}

func (*mistaken) Describe() sdk.Description { return sdk.Description{Name: "mistaken", Version: "1"} }

func (*mistaken) Tick(h *sdk.Host) {
	h.AddPoint(sdk.Point{ID: "both", Hook: "malloc", Symbols: []string{"free"}})
	h.Objective("s", math.NaN())
	h.Objective("s", 1)
}

// What cannot be asked for is left out, and people are told once; so they are of a point
// that is refused to a tunlet which does not hear of that.
func TestMistakesAreSaid(t *testing.T) {
	server := sdk.NewServer(func() sdk.Tunlet { return &mistaken{} }, sdk.ServerOptions{})
	ctx := context.Background()
	if _, err := server.Describe(ctx, &attunev1.DescribeRequest{}); err != nil {
		t.Fatal(err)
	}
	var said []string
	for round := range 2 {
		tick, err := server.Tick(ctx, &attunev1.TickRequest{UnixNano: int64(round + 1)})
		if err != nil {
			t.Fatal(err)
		}
		if r := tick.GetReaction(); len(r.GetAddPoints()) > 0 || len(r.GetObjectives()) != 1 {
			t.Errorf("round %d: %v", round, r)
		}
		refused, err := server.PointChanged(ctx, &attunev1.PointChangedRequest{
			PointId: "p", Status: &attunev1.PointStatus{Process: 1, State: attunev1.PointState_POINT_STATE_REFUSED, Reason: "no such symbol: frei"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append(tick.GetReaction().GetRemarks(), refused.GetReaction().GetRemarks()...) {
			said = append(said, m.GetText())
		}
	}
	want := []string{
		`measure point "both" is not asked for: it has 2 targets; want one of Hook, Symbols and Static`,
		`the objective in scope "s": values that are below 0, above 1e+100 or no numbers are left out: a change is judged by how many times better one value is than another`,
		`measure point "p" cannot be placed: no such symbol: frei`,
	}
	if strings.Join(said, "\n") != strings.Join(want, "\n") {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

// misfitting has methods with names of the SDK's and signatures of their own.
type misfitting struct{ mistaken }

func (*misfitting) HandleSamples(*sdk.Host, *sdk.Samples) {}

// A method that could never be called is an error of the first call, not silence.
func TestOtherSignatureIsAnError(t *testing.T) {
	server := sdk.NewServer(func() sdk.Tunlet { return &misfitting{} }, sdk.ServerOptions{})
	_, err := server.Describe(t.Context(), &attunev1.DescribeRequest{})
	want := "method HandleSamples of *sdk_test.misfitting is a func(*sdk.Host, *sdk.Samples), and would never be called: " +
		"sdk.SampleHandler wants a func(*sdk.Host, sdk.Samples)"
	if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
