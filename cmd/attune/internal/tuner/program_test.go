// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"testing"
	"time"
	"unsafe"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/local"
)

// A program has run for as long as it has, whoever sets the time of day meanwhile.
func TestEndWhenTheClockWasSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": -time.Hour, "not at all": 0, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			a, err := analyzer.New(analyzer.Config{Mode: "observe"})
			if err != nil {
				t.Fatal(err)
			}
			s := &Tuner{Options: Options{Args: []string{"/bin/true"}}, Joined: &local.Session{Analyzer: a}}
			start := a.Session().Start()
			exit := s.recordedExit(t.Context(), launch.Exit{}, afterClockWasSet(start.Add(5*time.Second), by))
			if ran := time.Duration(exit.GetEndedUnixNano() - start.UnixNano()); ran != 5*time.Second {
				t.Errorf("it ran for %v, want 5s", ran)
			}
		})
	}
}

// afterClockWasSet is what [time.Now] returns at a time if the time of day was set before: its
// monotonic part is the same. A Time has its seconds above 30 bits of nanoseconds.
func afterClockWasSet(at time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&at)) += uint64(int64(by/time.Second) << 30)
	return at
}
