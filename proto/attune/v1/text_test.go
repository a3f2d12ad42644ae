// SPDX-License-Identifier: Apache-2.0

package attunev1_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestValidText: wherever a text stands in a message, it can be encoded.
func TestValidText(t *testing.T) {
	tests := []struct {
		name      string
		raw, want proto.Message
	}{
		{"a field", &attunev1.Process{Executable: "caf\xe9"}, &attunev1.Process{Executable: "caf?"}},
		{"lists", &attunev1.Process{CommandLine: []string{"a\xc3", "b"}}, &attunev1.Process{CommandLine: []string{"a?", "b"}}},
		{"a map", &attunev1.TunletOptions{Values: map[string]string{"a": "\xff"}}, &attunev1.TunletOptions{Values: map[string]string{"a": "?"}}},
		{
			"messages in messages",
			&attunev1.PublishRequest{Event: &attunev1.PublishRequest_News{News: &attunev1.NewsBatch{News: []*attunev1.PublishRequest{
				{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: 7, Job: &attunev1.Job{Id: "\xe9"}}}},
			}}}},
			&attunev1.PublishRequest{Event: &attunev1.PublishRequest_News{News: &attunev1.NewsBatch{News: []*attunev1.PublishRequest{
				{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: 7, Job: &attunev1.Job{Id: "?"}}}},
			}}}},
		},
		{"bytes, which may be anything", &attunev1.RecordBatch{Records: []byte{0xff}}, &attunev1.RecordBatch{Records: []byte{0xff}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := proto.Clone(test.raw)
			valid := attunev1.ValidText(test.raw)
			if !proto.Equal(valid, test.want) {
				t.Errorf("%v, want %v", valid, test.want)
			}
			if !proto.Equal(test.raw, before) {
				t.Errorf("the message itself is %v now", test.raw)
			}
			if _, err := proto.Marshal(valid); err != nil {
				t.Error(err)
			}
		})
	}
}
