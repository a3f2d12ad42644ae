// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// A tunlet that says too much does not flood the log, and how much was left out
// is told once there is room.
func TestLogIsLimited(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	log := &limitedLog{
		log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})),
		now: func() time.Time { return now },
	}
	adapter := log.plugin()
	// said is how many lines were logged, and how many it is told that were not.
	said := func() string {
		defer out.Reset()
		text := strconv.Itoa(strings.Count(out.String(), "a word"))
		if _, lines, ok := strings.Cut(out.String(), "were not logged\" lines="); ok {
			text += ", without " + strings.Fields(lines)[0]
		}
		return text
	}
	say := func(n int) {
		for range n {
			adapter.Named(sdk.ProgramPrefix+"x").With("a", 1).Warn("a word")
			adapter.Named(sdk.ProgramPrefix + "x").Debug("what is not logged takes no room")
		}
	}
	for i, step := range []struct {
		after time.Duration
		say   int
		want  string
	}{
		{0, logLines, "20"},
		{time.Second / 2, 5, "0"},
		{time.Second / 2, 1, "1, without 5"},
		{0, logLines + 1, "19"},
		{time.Minute, 2, "2, without 2"},
	} {
		now = now.Add(step.after)
		say(step.say)
		if got := said(); got != step.want {
			t.Errorf("step %d: %q logged, want %q", i, got, step.want)
		}
	}
}
