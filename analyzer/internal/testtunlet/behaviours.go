// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// tunlet counts hits of the hook "malloc" and proposes to set the knob "test.k"
// to 7 in each process in which it saw five samples of less than 1,000 hits.
// The names that change this:
//
//	badversion   speaks API version 99
//	wrongname    calls itself something else
//	badoptions   refuses its configuration
//	crashmid     exits at the first process
//	hang         never returns from HandleEvents
//	flood        answers each tick with thousands of everything; it proposes no
//	             change that could be made, lest it be first to have the knob that
//	             another one is to get
//	environment  writes its environment into a remark
//	sleepy       sleeps until a process faults 1,000 times a second, and takes the
//	             option "n", a number from 1 to 9
//	sleepyhog    sleeps, and takes 200 MB of memory when it is asked what it is
//	sleepycrash  sleeps, and exits when it is started once more
//	newapi       is of an API that is not spoken here, and says so as the SDK does
//	hog          takes 200 MB of memory at the first tick
//	burner       takes all CPU time that it gets from the first tick on
//	glutton      asks for 4 GB at once at the first tick
//	verbose      answers the first tick with 5 MiB
//	silent       does not implement anything but Describe
type tunlet struct {
	attunev1.UnimplementedTunletServiceServer
	name   string
	slow   map[uint64]int
	ticks  int
	memory []byte
}

func newTunlet(name string) attunev1.TunletServiceServer {
	if name == "silent" {
		return &silent{}
	}
	return &tunlet{name: name, slow: map[uint64]int{}}
}

// silent implements only what it must.
type silent struct {
	attunev1.UnimplementedTunletServiceServer
}

func (*silent) Describe(context.Context, *attunev1.DescribeRequest) (*attunev1.DescribeResponse, error) {
	return &attunev1.DescribeResponse{Name: "silent", ApiVersion: sdk.APIVersion}, nil
}

func (t *tunlet) Describe(context.Context, *attunev1.DescribeRequest) (*attunev1.DescribeResponse, error) {
	info := &attunev1.DescribeResponse{
		Name: t.name, Version: "0.0.1", ApiVersion: sdk.APIVersion, Summary: "counts calls",
		Objective: &attunev1.Objective{Name: "calls_per_second", Unit: "1/s"},
		Knobs:     []*attunev1.Knob{{Name: "test.k"}},
	}
	if t.name == "sleepyhog" {
		t.memory = bytes.Repeat([]byte("x"), 200_000_000)
	}
	switch t.name {
	case "badversion":
		info.ApiVersion = "99"
	case "newapi":
		return nil, status.Error(codes.FailedPrecondition, "tunlet speaks API version 2, the analyzer [1]: rebuild")
	case "badoptions":
		info.Options = []*attunev1.Option{{Name: "a", Type: attunev1.OptionType_OPTION_TYPE_TEXT}}
	case "wrongname":
		info.Name = "somebody"
	case "needy":
		info.Options = []*attunev1.Option{
			{Name: "variable", Type: attunev1.OptionType_OPTION_TYPE_TEXT, Required: true},
			{Name: "object", Type: attunev1.OptionType_OPTION_TYPE_TEXT},
		}
	case "sleepy", "sleepyhog", "sleepycrash":
		info.Wake = []*attunev1.Wake{{Levels: []*attunev1.Level{{Series: uint32(series.MinorFaults), AtLeast: 1000}}}}
		info.Options = []*attunev1.Option{{Name: "n", Type: attunev1.OptionType_OPTION_TYPE_INTEGER, Min: "1", Max: "9"}}
	}
	return info, nil
}

func (t *tunlet) Configure(_ context.Context, r *attunev1.ConfigureRequest) (*attunev1.ConfigureResponse, error) {
	if t.name == "badoptions" {
		return &attunev1.ConfigureResponse{Error: fmt.Sprintf("it does not like %v", r.GetOptions())}, nil
	}
	return &attunev1.ConfigureResponse{}, nil
}

func (t *tunlet) ApplicationStarted(context.Context, *attunev1.ApplicationStartedRequest) (*attunev1.ApplicationStartedResponse, error) {
	r := &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{{
		Id: "calls", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"},
	}}}
	if t.name == "environment" {
		r.Remarks = append(r.Remarks, &attunev1.Remark{Text: strings.Join(os.Environ(), "\n")})
	}
	return &attunev1.ApplicationStartedResponse{Reaction: r}, nil
}

func (t *tunlet) ProcessStarted(context.Context, *attunev1.ProcessStartedRequest) (*attunev1.ProcessStartedResponse, error) {
	if t.name == "crashmid" {
		fmt.Fprintln(os.Stderr, "panic: index out of range")
		os.Exit(2)
	}
	return &attunev1.ProcessStartedResponse{}, nil
}

func (t *tunlet) HandleEvents(ctx context.Context, r *attunev1.HandleEventsRequest) (*attunev1.HandleEventsResponse, error) {
	if t.name == "hang" {
		select {} // not even the end of the call
	}
	out := &attunev1.Reaction{}
	for _, a := range r.GetAggregates() {
		process, count := a.GetAggregate().GetProcess(), float64(a.GetAggregate().GetCount())
		scope := fmt.Sprintf("process %d", process)
		out.Objectives = append(out.Objectives, &attunev1.ObjectiveSample{Scope: scope, Value: count, UnixNano: r.GetToUnixNano()})
		if count < 1000 {
			t.slow[process]++
		}
		if t.slow[process] == 5 && t.name != "flood" {
			out.Proposals = append(out.Proposals, proposal(process, scope))
		}
	}
	return &attunev1.HandleEventsResponse{Reaction: out}, nil
}

func proposal(process uint64, scope string) *attunev1.Proposal {
	return &attunev1.Proposal{
		Id: scope, Scope: scope, Reason: "few calls", PredictedGain: 10,
		Changes: []*attunev1.Change{{
			Knob: "test.k", Process: process,
			Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{
				Name: "test.k", Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 7}},
			}}},
		}},
	}
}

func (t *tunlet) Tick(_ context.Context, r *attunev1.TickRequest) (*attunev1.TickResponse, error) {
	t.ticks++
	if t.name == "hog" && t.ticks == 1 {
		t.memory = bytes.Repeat([]byte("x"), 200_000_000)
	}
	if t.name == "burner" && t.ticks == 1 {
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	}
	if t.name == "glutton" {
		t.memory = make([]byte, 4_000_000_000)
	}
	out := &attunev1.Reaction{}
	if t.name == "verbose" && t.ticks == 1 {
		out.Remarks = append(out.Remarks, &attunev1.Remark{Text: strings.Repeat("x", 5<<20)})
	}
	if t.name == "flood" {
		for i := range 5000 {
			id := fmt.Sprintf("%d-%d", t.ticks, i)
			out.AddPoints = append(out.AddPoints, &attunev1.MeasurePoint{Id: id, Target: &attunev1.MeasurePoint_Hook{Hook: id}})
			out.Objectives = append(out.Objectives, &attunev1.ObjectiveSample{Scope: id, Value: 1, UnixNano: r.GetUnixNano()})
			out.Proposals = append(out.Proposals, &attunev1.Proposal{Id: id})
			out.Remarks = append(out.Remarks, &attunev1.Remark{Text: id})
		}
	}
	return &attunev1.TickResponse{Reaction: out}, nil
}

func (*tunlet) PointChanged(context.Context, *attunev1.PointChangedRequest) (*attunev1.PointChangedResponse, error) {
	return &attunev1.PointChangedResponse{}, nil
}
