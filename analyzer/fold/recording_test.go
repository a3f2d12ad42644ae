// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"bytes"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

// The report of a recording that lacks data says so.
func TestRecordingThatLacks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dropped uint64
		remark  string
	}{
		{"nothing", 0, ""},
		{"batches", 3, "the recording lacks 3 batches of measured data: its disk was too slow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var file bytes.Buffer
			w, err := recording.NewWriter(&file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []*attunev1.RecordingFrame{
				{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{}}},
				{AtNanos: 2e9, What: &attunev1.RecordingFrame_End{End: &attunev1.RecordingEnd{Dropped: tt.dropped}}},
			} {
				if err := w.Write(f); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := recording.NewReader(&file)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			a, err := Recording(r)
			if err != nil {
				t.Fatal(err)
			}
			got := a.Report(a.At()).Remarks
			if tt.remark == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || got[0].Text != tt.remark || got[0].From != report.OwnerName {
				t.Errorf("remarks %+v, want %q", got, tt.remark)
			}
		})
	}
}
