// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"io"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestDecisions(t *testing.T) {
	var out bytes.Buffer
	log := report.NewTimeline(decisions{&out}, report.TimelineOptions{Durable: true})
	for _, kind := range []string{"session_started", "process_started", "point", "applied", "process_ended", "restored"} {
		log.Write(report.Entry{Kind: kind})
	}
	if dropped, err := log.Close(patience.Limit); dropped > 0 || err != nil {
		t.Fatalf("%d dropped, %v", dropped, err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 2 || !bytes.Contains(out.Bytes(), []byte(`"applied"`)) || !bytes.Contains(out.Bytes(), []byte(`"restored"`)) {
		t.Errorf("%s", &out)
	}
}

// TestAuditOfSessions: every session has a place for its decisions.
func TestAuditOfSessions(t *testing.T) {
	p := newPlace(t)
	asked := make(chan string, 8)
	a := p.analyzer("a", func(c *Config) {
		c.Audit = func(what string) io.Writer { asked <- what; return io.Discard }
	})
	ann := p.people(p.pki.User(t, "ann", annUID), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	p.dial(a, hello("n1", id, job), 1)
	if got, want := patience.Receive(t, "place for decisions", asked), "session "+id+".slurm-12.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
