// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The audit log has what was decided, and the timeline all lines.
func TestAuditedLines(t *testing.T) {
	var timeline, audit bytes.Buffer
	w, account := newWritten(Config{Timeline: &timeline, Audit: &audit}), fold.NewAccount()
	decision := func(kind string) *attunev1.RecordingFrame {
		return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Decision{Decision: &attunev1.RecordedDecision{
			Kind: kind, Proposal: &attunev1.RecordedProposal{Number: 1},
		}}}
	}
	for _, f := range []*attunev1.RecordingFrame{
		{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{}}},
		{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{Handle: 1}}}},
		decision("applied"),
		{What: &attunev1.RecordingFrame_Remark{Remark: &attunev1.RecordedRemark{Text: "hello"}}},
		decision("restored"),
		{What: &attunev1.RecordingFrame_Finish{Finish: &attunev1.RecordedFinish{}}},
	} {
		account.Take(f)
		for _, sink := range w.sinks(account) {
			sink.Take(f)
		}
	}
	w.close()
	for want, written := range map[string]*bytes.Buffer{
		"session_started process_started applied remark restored session_ended": &timeline,
		"applied restored session_ended":                                        &audit,
	} {
		var kinds []string
		for line := range strings.Lines(written.String()) {
			var e report.Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, e.Kind)
		}
		if diff := cmp.Diff(want, strings.Join(kinds, " ")); diff != "" {
			t.Error(diff)
		}
	}
}
