// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
	"github.com/attune-hpc/attune/tunlets/sdk/replay"
)

const ms = int64(1e6)

// tunlet is one whose reactions the test gives, by the call that they answer. It
// notes what it is told.
type tunlet struct {
	attunev1.TunletServiceClient // nil: what is not there must not be called

	reactions map[string]*attunev1.Reaction // each once
	told      []string
	explains  bool  // it was asked to
	fails     error // at the first tick
}

func (t *tunlet) react(format string, args ...any) *attunev1.Reaction {
	what := fmt.Sprintf(format, args...)
	t.told = append(t.told, what)
	r := t.reactions[what]
	delete(t.reactions, what)
	return r
}

func (t *tunlet) ApplicationStarted(_ context.Context, r *attunev1.ApplicationStartedRequest, _ ...grpc.CallOption) (*attunev1.ApplicationStartedResponse, error) {
	t.explains = r.GetApplication().GetExplain()
	return &attunev1.ApplicationStartedResponse{Reaction: t.react("start %s", r.GetApplication().GetMode())}, nil
}

func (t *tunlet) ProcessStarted(_ context.Context, r *attunev1.ProcessStartedRequest, _ ...grpc.CallOption) (*attunev1.ProcessStartedResponse, error) {
	return &attunev1.ProcessStartedResponse{Reaction: t.react("process %d", r.GetProcess().GetHandle())}, nil
}

func (t *tunlet) ProcessEnded(_ context.Context, r *attunev1.ProcessEndedRequest, _ ...grpc.CallOption) (*attunev1.ProcessEndedResponse, error) {
	return &attunev1.ProcessEndedResponse{Reaction: t.react("ended %d", r.GetEnded().GetProcess())}, nil
}

func (t *tunlet) HandleEvents(_ context.Context, r *attunev1.HandleEventsRequest, _ ...grpc.CallOption) (*attunev1.HandleEventsResponse, error) {
	var parts []string
	for _, s := range r.GetSamples().GetSamples() {
		parts = append(parts, fmt.Sprintf("sample of %d", s.GetProcess()))
	}
	for _, a := range r.GetAggregates() {
		parts = append(parts, fmt.Sprintf("%s %d in %d", a.GetPointId(), a.GetAggregate().GetCount(), a.GetAggregate().GetProcess()))
	}
	for _, n := range r.GetRecords() {
		parts = append(parts, fmt.Sprintf("%d bytes of records, %d lost", len(n.GetRecords()), n.GetLost()))
	}
	return &attunev1.HandleEventsResponse{Reaction: t.react("%s", strings.Join(parts, ", "))}, nil
}

func (t *tunlet) PointChanged(_ context.Context, r *attunev1.PointChangedRequest, _ ...grpc.CallOption) (*attunev1.PointChangedResponse, error) {
	state := strings.ToLower(strings.TrimPrefix(r.GetStatus().GetState().String(), "POINT_STATE_"))
	return &attunev1.PointChangedResponse{Reaction: t.react("point %s %s in %d", r.GetPointId(), state, r.GetStatus().GetProcess())}, nil
}

func (t *tunlet) Tick(context.Context, *attunev1.TickRequest, ...grpc.CallOption) (*attunev1.TickResponse, error) {
	if t.fails != nil {
		return nil, t.fails
	}
	return nil, status.Error(codes.Unimplemented, "not interested")
}

func (t *tunlet) Evaluate(_ context.Context, r *attunev1.EvaluateRequest, _ ...grpc.CallOption) (*attunev1.EvaluateResponse, error) {
	t.react("evaluate %s", r.GetProposalId())
	return &attunev1.EvaluateResponse{Verdict: attunev1.Verdict_VERDICT_WAIT, Reason: "too early"}, nil
}

func (t *tunlet) ProposalChanged(_ context.Context, r *attunev1.ProposalChangedRequest, _ ...grpc.CallOption) (*attunev1.ProposalChangedResponse, error) {
	state := strings.ToLower(strings.TrimPrefix(r.GetState().String(), "PROPOSAL_STATE_"))
	return &attunev1.ProposalChangedResponse{Reaction: t.react("%s %s", r.GetProposalId(), state)}, nil
}

func (t *tunlet) ApplicationEnded(context.Context, *attunev1.ApplicationEndedRequest, ...grpc.CallOption) (*attunev1.ApplicationEndedResponse, error) {
	t.react("end")
	return nil, status.Error(codes.Unimplemented, "not interested")
}

// hook is a measure point of malloc; set changes a knob of process 1.
func hook(id string, processes ...uint64) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: id, Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}, Processes: processes}
}

func set(id, setting string) *attunev1.Proposal {
	return &attunev1.Proposal{Id: id, Scope: "s", Reason: "why", PredictedGain: 2, Changes: []*attunev1.Change{{
		Process: 1, Knob: setting, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{
			Name: setting, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 1}},
		}}},
	}}}
}

// record makes a recording; the frames' times are given as they come.
type record struct {
	frames  []*attunev1.RecordingFrame
	dropped uint64 // as its end says
}

func (r *record) at(millis int64, frames ...*attunev1.RecordingFrame) {
	for _, f := range frames {
		f.AtNanos = millis * ms
		r.frames = append(r.frames, f)
	}
}

func (r *record) file(t *testing.T, end bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := recording.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	frames := append([]*attunev1.RecordingFrame{{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{
		StartUnixNano: 1e18, Application: &attunev1.Application{Mode: "tune"},
	}}}}, r.frames...)
	if end {
		frames = append(frames, &attunev1.RecordingFrame{AtNanos: 1000 * ms, What: &attunev1.RecordingFrame_End{End: &attunev1.RecordingEnd{Dropped: r.dropped}}})
	}
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func process(handle uint64) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessStarted{ProcessStarted: &attunev1.ProcessStartedRequest{
		Process: &attunev1.Process{Handle: handle, Executable: "/usr/bin/solver", Objects: []string{"/lib/libm.so.6"}},
	}}}
}

func sample(at int64, process uint64, faults float64) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{
		UnixNano: at * ms, Samples: []*attunev1.Sample{{Process: process, Tables: []*attunev1.Table{
			series.SignalTable(series.Reading{ID: series.MinorFaults, Value: uint64(faults)}),
		}}},
	}}}
}

func point(index uint32, spec *attunev1.MeasurePoint) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Point{Point: &attunev1.AddPoint{Point: index, Spec: spec}}}
}

func placed(index uint32, process uint64) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{PointStatus: &attunev1.PointStatus{
		Point: index, Process: process, State: attunev1.PointState_POINT_STATE_PLACED,
	}}}
}

func hits(index uint32, process, n uint64) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Aggregates{Aggregates: &attunev1.AggregateBatch{
		FromUnixNano: 1, ToUnixNano: 2, Aggregates: []*attunev1.Aggregate{{Point: index, Process: process, Count: n}},
	}}}
}

func proposed(by string, p *attunev1.Proposal) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Reaction{Reaction: &attunev1.RecordedReaction{
		Tunlet: by, Reaction: &attunev1.Reaction{Proposals: []*attunev1.Proposal{p}},
	}}}
}

func became(of string, state attunev1.ProposalState) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Notice{Notice: &attunev1.RecordedNotice{
		Tunlet: "t", Request: &attunev1.ProposalChangedRequest{ProposalId: of, State: state},
	}}}
}

// run replays and returns what the tunlet was told, and the transcript.
func run(t *testing.T, tn *tunlet, r *record, info *attunev1.DescribeResponse) (told []string, transcript string) {
	t.Helper()
	var out bytes.Buffer
	info.Name = "t"
	if err := replay.Run(context.Background(), bytes.NewReader(r.file(t, true)), replay.Options{Tunlet: tn, Info: info, Transcript: &out}); err != nil {
		t.Fatal(err)
	}
	return tn.told, out.String()
}

func want(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tunlet was told (-want +got):\n%s", diff)
	}
}

// A point that the recording has under another name, in more processes or in
// several parts delivers what is in the recording of it.
func TestPoints(t *testing.T) {
	var r record
	r.at(10, process(1), process(2), process(3))
	r.at(20, point(7, hook("one", 1)), placed(7, 1), point(8, hook("others", 2, 3)), placed(8, 2), placed(8, 3))
	r.at(30, hits(7, 1, 5), hits(8, 2, 6), hits(8, 3, 7))
	r.at(40, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointEnd{PointEnd: &attunev1.RemovePoint{Point: 7}}})
	r.at(50, point(7, &attunev1.MeasurePoint{Id: "else", Target: &attunev1.MeasurePoint_Hook{Hook: "free"}}), placed(7, 1), hits(7, 1, 9))
	tn := &tunlet{reactions: map[string]*attunev1.Reaction{
		"process 3": {AddPoints: []*attunev1.MeasurePoint{
			hook("mine", 1, 2), hook("mine", 3), hook("nobody's", 4), {Id: "unknown", Target: &attunev1.MeasurePoint_Hook{Hook: "read"}},
			{Id: "unknown in 2", Target: &attunev1.MeasurePoint_Hook{Hook: "read"}, Processes: []uint64{2}},
		}},
		"mine 6 in 2": {RemovePoints: []string{"mine"}, AddPoints: []*attunev1.MeasurePoint{hook("all")}},
	}}
	told, transcript := run(t, tn, &r, &attunev1.DescribeResponse{})
	want(t, []string{
		"start tune", "process 1", "process 2", "process 3",
		"point nobody's refused in 4", "point unknown refused in 0", "point unknown in 2 refused in 2",
		"point mine placed in 1", "point mine placed in 2", "mine 5 in 1", "mine 6 in 2",
		"point all placed in 1", "point all placed in 2", "point all placed in 3", "all 7 in 3",
		"end",
	}, told)
	for _, line := range []string{
		`   0.010 measures "mine": hook malloc in process 1 (solver), process 2 (solver)`,
		`   0.010 is not given another "mine": it has to remove that one before, or to use another id`,
		`   0.010 is refused "unknown" in every process: the recording does not have it`,
		`   0.030 measures "mine" no more`,
	} {
		if !strings.Contains(transcript, line+"\n") {
			t.Errorf("the transcript lacks %q:\n%s", line, transcript)
		}
	}
}

// The same change as in the recording has the same fate, when it was made later
// too; any other is advice.
func TestProposals(t *testing.T) {
	kept, applied := attunev1.ProposalState_PROPOSAL_STATE_KEPT, attunev1.ProposalState_PROPOSAL_STATE_APPLIED
	var r record
	r.at(10, process(1))
	r.at(20, proposed("other", set("p", "a")), proposed("t", set("p1", "a")), became("p1", applied), proposed("t", set("p2", "b")))
	r.at(30, sample(30, 1, 0))
	r.at(40, became("p1", kept), became("p1/1", attunev1.ProposalState_PROPOSAL_STATE_UNDONE), became("p2", kept))
	r.at(50, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Evaluation{Evaluation: &attunev1.RecordedEvaluation{
		Tunlet: "t", Request: &attunev1.EvaluateRequest{ProposalId: "p1", Suggested: attunev1.Verdict_VERDICT_KEEP},
	}}}, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Evaluation{Evaluation: &attunev1.RecordedEvaluation{
		Tunlet: "t", Request: &attunev1.EvaluateRequest{ProposalId: "p2"},
	}}})
	tn := &tunlet{reactions: map[string]*attunev1.Reaction{
		"sample of 1": {Proposals: []*attunev1.Proposal{set("mine", "a"), set("new", "c")}},
	}}
	told, transcript := run(t, tn, &r, &attunev1.DescribeResponse{})
	want(t, []string{
		"start tune", "process 1", "sample of 1", "mine applied", "new advised",
		"mine kept", "mine/1 undone", "evaluate mine", "end",
	}, told)
	for _, line := range []string{
		`   0.030 proposes "mine", by scope "s": gain 2 predicted, confidence 0; why`,
		`   0.030   process 1 (solver): set a=1`,
		`   0.050 "mine" from 0 to 0, suggested keep: says wait: too early`,
	} {
		if !strings.Contains(transcript, line+"\n") {
			t.Errorf("the transcript lacks %q:\n%s", line, transcript)
		}
	}
}

// A tunlet hears nothing before one of its conditions holds, and then what it
// would have heard.
func TestWake(t *testing.T) {
	var r record
	r.at(10, process(1), process(2))
	r.at(20, sample(20, 1, 0))
	r.at(70, sample(70, 1, 1))
	r.at(120, sample(120, 1, 1000))
	r.at(170, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 2}}})
	info := &attunev1.DescribeResponse{Wake: []*attunev1.Wake{{Levels: []*attunev1.Level{{
		Series: uint32(series.MinorFaults), AtLeast: 5000,
	}}}}}
	told, _ := run(t, &tunlet{}, &r, info)
	want(t, []string{"start tune", "process 1", "process 2", "sample of 1", "sample of 1", "ended 2", "end"}, told)

	info.Wake[0].Levels[0].AtLeast = 1e9
	told, transcript := run(t, &tunlet{}, &r, info)
	want(t, nil, told)
	if !strings.Contains(transcript, "it was not started") {
		t.Error(transcript)
	}
}

// A tunlet that the recorded session started because of what earlier runs had learnt
// is started at that time; what woke another tunlet, or this one by a sample, is not
// taken over.
func TestNeeded(t *testing.T) {
	woken := func(name string, process uint64) *attunev1.RecordingFrame {
		return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Sleeper{Sleeper: &attunev1.RecordedSleeper{
			Tunlet: name, Woken: true, Process: process, Text: "woken: it helped this program before",
		}}}
	}
	var r record
	r.at(10, process(1))
	r.at(20, sample(20, 1, 0), woken("other", 0), woken("t", 1))
	r.at(50, woken("t", 0))
	r.at(70, sample(70, 1, 0))
	info := &attunev1.DescribeResponse{Wake: []*attunev1.Wake{{Levels: []*attunev1.Level{{
		Series: uint32(series.MinorFaults), AtLeast: 1e9,
	}}}}}
	told, transcript := run(t, &tunlet{}, &r, info)
	want(t, []string{"start tune", "process 1", "sample of 1", "end"}, told)
	if !strings.Contains(transcript, "   0.050 starts: woken: it helped this program before\n") {
		t.Error(transcript)
	}
}

// A tunlet is asked why it decides so if somebody wants to know, and what it says is in
// the transcript.
func TestExplains(t *testing.T) {
	var r record
	r.at(10, process(1))
	for _, explain := range []bool{false, true} {
		tn := &tunlet{reactions: map[string]*attunev1.Reaction{"process 1": {
			Explanations: []*attunev1.Remark{{Process: 1, Text: "symptom is false"}, {Text: "nothing to do"}},
		}}}
		var out bytes.Buffer
		err := replay.Run(context.Background(), bytes.NewReader(r.file(t, true)), replay.Options{
			Tunlet: tn, Info: &attunev1.DescribeResponse{Name: "t"}, Explain: explain, Transcript: &out,
		})
		if err != nil || tn.explains != explain {
			t.Errorf("%v; asked to explain: %v, want %v", err, tn.explains, explain)
		}
		for _, line := range []string{"   0.010 explains of process 1 (solver): symptom is false\n", "   0.010 explains: nothing to do\n"} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("the transcript lacks %q:\n%s", line, out.String())
			}
		}
	}
}

// Of records, a tunlet gets those of its points, with their continuations, and
// is told of losses.
func TestRecords(t *testing.T) {
	packed := make([]byte, 4*32)
	for i, index := range []uint16{7, 8, 0, 7} {
		binary.LittleEndian.PutUint16(packed[i*32+8:], index)
	}
	packed[2*32+10] = 1 << 3 // continues the one of 8
	events := func(hook string) *attunev1.MeasurePoint {
		return &attunev1.MeasurePoint{Id: hook, Target: &attunev1.MeasurePoint_Hook{Hook: hook}, Delivery: attunev1.Delivery_DELIVERY_EVENT}
	}
	records := func(data []byte, lost uint64) *attunev1.RecordingFrame {
		return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: &attunev1.NamedRecords{Process: 1, Records: data, Lost: lost}}}
	}
	var r record
	r.at(10, point(7, events("read")), point(8, events("write")), process(1), placed(8, 1))
	r.at(20, records(packed, 0), records(packed[:32], 0), records(packed[:32], 3))
	tn := &tunlet{reactions: map[string]*attunev1.Reaction{"process 1": {AddPoints: []*attunev1.MeasurePoint{events("write")}}}}
	told, _ := run(t, tn, &r, &attunev1.DescribeResponse{})
	want(t, []string{
		"start tune", "process 1", "point write placed in 1",
		"64 bytes of records, 0 lost", "0 bytes of records, 3 lost", "end",
	}, told)
}

// A recording that was cut off drives nothing, unless its beginning will do.
func TestPartial(t *testing.T) {
	var r record
	r.at(10, process(1))
	file := r.file(t, false)
	for _, partial := range []bool{false, true} {
		var out bytes.Buffer
		tn := &tunlet{}
		err := replay.Run(context.Background(), bytes.NewReader(file), replay.Options{
			Tunlet: tn, Info: &attunev1.DescribeResponse{Name: "t"}, Partial: partial, Transcript: &out,
		})
		if partial {
			want(t, []string{"start tune", "process 1", "end"}, tn.told)
			if err != nil || !strings.Contains(out.String(), "ends early") {
				t.Errorf("%v\n%s", err, out.String())
			}
		} else if !errors.Is(err, recording.ErrTruncated) || len(tn.told) > 0 {
			t.Errorf("%v, told %v", err, tn.told)
		}
	}
}

// A recording that lacks data is replayed, and the transcript says what it lacks.
func TestLacking(t *testing.T) {
	r := record{dropped: 7}
	r.at(10, process(1))
	_, transcript := run(t, &tunlet{}, &r, &attunev1.DescribeResponse{})
	if !strings.Contains(transcript, "the recording lacks 7 batches of measured data") {
		t.Error(transcript)
	}
}

// A tunlet that fails ends the replay, and says when.
func TestTunletFails(t *testing.T) {
	var r record
	r.at(250, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tick{Tick: &attunev1.RecordedTick{}}})
	tn := &tunlet{fails: status.Error(codes.Internal, "panicked")}
	err := replay.Run(context.Background(), bytes.NewReader(r.file(t, true)), replay.Options{
		Tunlet: tn, Info: &attunev1.DescribeResponse{Name: "t"}, Transcript: &bytes.Buffer{},
	})
	if err == nil || !strings.Contains(err.Error(), "at 250ms of the recording") || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("%v", err)
	}
}
