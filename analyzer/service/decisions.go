// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/attune-hpc/attune/analyzer/core"
)

// decisions passes on the lines of a session's log that say what was decided and
// done, and why. Processes and measure points are in its report.
type decisions struct{ to io.Writer }

// decided are the kinds of those lines, see report.Entry.
var decided = append(core.RecordKinds(), "session_ended")

// Write implements io.Writer for one line at a time.
func (d decisions) Write(line []byte) (int, error) {
	var entry struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &entry); err == nil && !slices.Contains(decided, entry.Kind) {
		return len(line), nil
	}
	return d.to.Write(line)
}

// audit is where a session's decisions go; nil: nowhere.
func audit(place func(string) io.Writer, session string) io.Writer {
	if place == nil {
		return nil
	}
	return decisions{place("session " + session)}
}
