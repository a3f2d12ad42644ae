// SPDX-License-Identifier: Apache-2.0

package analyzer

import "github.com/attune-hpc/attune/analyzer/recorder"

// openRecording begins the recording, if there is to be one. One that cannot be begun
// is told in the report.
func (a *Analyzer) openRecording() {
	if a.cfg.Record == nil {
		return
	}
	r, err := recorder.New(a.cfg.Record)
	if err != nil {
		a.noteWrite(recorder.Problem(0, err))
		return
	}
	a.recorder = r
}

// closeRecording ends the recording and keeps what went wrong for the report.
func (a *Analyzer) closeRecording() {
	if a.recorder == nil {
		return
	}
	if text := recorder.Problem(a.recorder.Close(recordPatience)); text != "" {
		a.noteWrite(text)
	}
}

// noteWrite keeps what went wrong with an output for the report.
func (a *Analyzer) noteWrite(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeErr = append(a.writeErr, text)
}
