// SPDX-License-Identifier: Apache-2.0

package attunev1_test

import (
	"errors"
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

// TestEncode: a message whose texts are UTF-8 is encoded as it is, without a copy.
func TestEncode(t *testing.T) {
	for _, test := range []struct {
		name, want string
		times      int
	}{{"caf\u00e9", "caf\u00e9", 1}, {"caf\xe9", "caf?", 2}} {
		var times int
		message, got := &attunev1.Process{Executable: test.name}, new(attunev1.Process)
		data, err := attunev1.Encode(message, func(m *attunev1.Process) ([]byte, error) {
			if times++; (m == message) != (times == 1) {
				t.Errorf("%q, time %d: %p, the message is %p", test.name, times, m, message)
			}
			return proto.Marshal(m)
		})
		if err := errors.Join(err, proto.Unmarshal(data, got)); err != nil || got.GetExecutable() != test.want || times != test.times {
			t.Errorf("%q: %v after %d times, %v", test.name, got, times, err)
		}
	}
}
