// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"errors"
	"io"

	"github.com/attune-hpc/attune/analyzer/recorder"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

// Recording returns the account of a recorded session; it remarks what the recording
// lacks. Errors are those of the recording, see [recording.Reader]; with one, the
// account has what stands before.
func Recording(r *recording.Reader) (*Account, error) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: r.Header()}})
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			if text := recorder.Problem(r.End().GetDropped(), nil); text != "" {
				a.remark(&attunev1.RecordedRemark{From: report.OwnerName, Text: text})
			}
			return a, nil
		}
		if err != nil {
			return a, err
		}
		a.Take(f)
	}
}
