// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/member"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestLosses: what does not reach the Analyzer is counted by what it is.
func TestLosses(t *testing.T) {
	ended := endOf(&attunev1.ProcessEnded{Process: 1})
	started := startOf(member.New(new(attunev1.Process), member.Options{}))
	tests := []struct {
		name    string
		message *attunev1.PublishRequest
		want    *attunev1.ControllerStatus
		batch   *attunev1.RecordBatch
	}{
		{"aggregates", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: &attunev1.AggregateBatch{
			Aggregates: []*attunev1.Aggregate{{Count: 5}, {Count: 2, Unreadable: 1}},
		}}}, &attunev1.ControllerStatus{HitsLost: 8}, nil},
		{"samples", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
			Samples: []*attunev1.Sample{{}, {}},
		}}}, &attunev1.ControllerStatus{SamplesLost: 2}, nil},
		{"a start, which is told again", started, new(attunev1.ControllerStatus), nil},
		{"an end", ended, &attunev1.ControllerStatus{EndsLost: 1}, nil},
		{"news", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_News{News: &attunev1.NewsBatch{
			News: []*attunev1.PublishRequest{started, ended, started, ended},
		}}}, &attunev1.ControllerStatus{EndsLost: 2}, nil},
		{"records", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: &attunev1.RecordBatch{
			Process: 7, Records: make([]byte, 3*attunev1.RecordSize), RecordCount: 3, LostRing: 1, LostQueue: 2, LostBpf: 4,
		}}}, new(attunev1.ControllerStatus), &attunev1.RecordBatch{Process: 7, RecordCount: 3, LostRing: 1, LostQueue: 2, LostBpf: 4}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var losses Losses
			loss := LossOf(test.message)
			losses.Add(loss)
			got := new(attunev1.ControllerStatus)
			losses.Tell(got)
			if !proto.Equal(got, test.want) {
				t.Errorf("counted %v, want %v", got, test.want)
			}
			if batch := loss.Batch(); !proto.Equal(batch, test.batch) {
				t.Errorf("records are lost as %v, want %v", batch, test.batch)
			}
		})
	}
}
