// SPDX-License-Identifier: Apache-2.0

package series_test

import (
	"maps"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The catalogue names each series once, in one form, with a number of its own.
func TestCatalogue(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	ids, names := map[series.ID]string{}, map[string]bool{}
	for _, s := range series.Signals().Series {
		if before, twice := ids[s.ID]; twice || s.ID == 0 {
			t.Errorf("%s has the number %d of %q", s.Name, s.ID, before)
		}
		if names[s.Name] || !name.MatchString(s.Name) || s.Help == "" || s.Kind == 0 {
			t.Errorf("%+v is there twice, or something of it is missing", s)
		}
		ids[s.ID], names[s.Name] = s.Name, true
	}
}

func TestSignals(t *testing.T) {
	table := series.SignalTable(series.Reading{ID: series.RunTime, Value: 7}, series.Reading{ID: 1 << 20, Value: 8})
	sample := &attunev1.Sample{Tables: []*attunev1.Table{{Table: 1, Numbers: []uint32{3}, Rows: []*attunev1.Row{{Numbers: []uint64{1}}}}, table}}
	got := maps.Collect(series.SignalsOf(sample))
	if diff := cmp.Diff(map[series.ID]uint64{series.RunTime: 7, 1 << 20: 8}, got); diff != "" {
		t.Errorf("signals (-want +got)\n%s", diff)
	}
	if v, ok := series.Signal(sample, series.RunTime); !ok || v != 7 {
		t.Errorf("run time %v, %v", v, ok)
	}
	table.Rows[0].Numbers = nil // less than the table says
	if v, ok := series.Signal(sample, series.RunTime); ok {
		t.Errorf("run time %v of an empty row", v)
	}
	if v, ok := series.Signal(nil, series.RunTime); ok {
		t.Errorf("run time %v of no sample", v)
	}
}

// What earlier versions recorded is what is recorded now.
func TestUpgrade(t *testing.T) {
	reading := func(of attunev1.Signal, v float64) *attunev1.Reading { return &attunev1.Reading{Signal: of, Value: v} }
	for _, tt := range []struct {
		name      string
		old, want *attunev1.RecordingFrame
	}{
		{
			"signals",
			samples(&attunev1.Sample{Process: 3, Readings: []*attunev1.Reading{reading(3, 5e9), reading(5, 2)}}),
			samples(&attunev1.Sample{Process: 3, Tables: []*attunev1.Table{
				series.SignalTable(series.Reading{ID: series.RunTime, Value: 5e9}, series.Reading{ID: series.MinorFaults, Value: 2}),
			}}),
		},
		{
			"levels of an interest",
			reaction(&attunev1.Reaction{Interests: []*attunev1.SampleInterest{{Levels: []*attunev1.Level{{Signal: 5, AtLeast: 3}}}}}),
			reaction(&attunev1.Reaction{Interests: []*attunev1.SampleInterest{{Levels: []*attunev1.Level{{Series: 5, AtLeast: 3}}}}}),
		},
		{
			"levels of a condition of waking",
			waking(&attunev1.Wake{Levels: []*attunev1.Level{{Signal: 5, AtLeast: 3}}}),
			waking(&attunev1.Wake{Levels: []*attunev1.Level{{Series: 5, AtLeast: 3}}}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, f := range []*attunev1.RecordingFrame{tt.old, proto.CloneOf(tt.want)} {
				series.Upgrade(f)
				if diff := cmp.Diff(tt.want, f, protocmp.Transform()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func samples(s *attunev1.Sample) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{s}}}}
}

func reaction(r *attunev1.Reaction) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Reaction{Reaction: &attunev1.RecordedReaction{Reaction: r}}}
}

func waking(w *attunev1.Wake) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tunlet{Tunlet: &attunev1.RecordedTunlet{
		Info: &attunev1.DescribeResponse{Wake: []*attunev1.Wake{w}},
	}}}
}
