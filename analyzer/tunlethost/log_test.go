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

// What a tunlet writes while it serves is logged with its own level, whatever pieces it
// comes in.
func TestLinesKeepTheirLevel(t *testing.T) {
	for _, tt := range []struct{ written, want string }{
		{`{"@level":"warn","@message":"no metric","@timestamp":"2026-01-01T00:00:00Z","file":"x","n":3}`, `level=WARN msg="no metric" file=x n=3`},
		{`{"@level":"info","@message":"begun"}`, "level=INFO msg=begun"},
		{`{"@level":"error","@message":"gone"}`, "level=WARN msg=gone"}, // what is lost to a tunlet degrades its host
		{"[WARN] no metric", `level=WARN msg="no metric"`},
		{"[INFO]  begun", "level=INFO msg=begun"},
		{"[7] items", `level=DEBUG msg="[7] items"`},
		{"words", "level=DEBUG msg=words"},
		{`{"level":"warn"}`, `level=DEBUG msg="{\"level\":\"warn\"}"`},
		{strings.Repeat("x", maxLine+1), "level=DEBUG msg=" + strings.Repeat("x", maxLine+1)},
	} {
		for _, piece := range []int{1, 7, len(tt.written) + 1} {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
			w := &leveledLogger{to: newLimitedLog(log).plugin().Named(sdk.ProgramPrefix + "x")}
			for text := tt.written + "\n"; text != ""; {
				n := min(piece, len(text))
				if _, err := w.Write([]byte(text[:n])); err != nil {
					t.Fatal(err)
				}
				text = text[n:]
			}
			got, _, _ := strings.Cut(out.String(), "\n")
			if got != tt.want {
				t.Errorf("%.60q in pieces of %d is logged as %.80q, want %.80q", tt.written, piece, got, tt.want)
			}
		}
	}
}
