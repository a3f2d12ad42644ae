// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Of many sessions those are listed that are asked for.
func TestSessionsAreNarrowed(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	session := func(id string, uid uint32, user, job, node string, began, ended time.Duration) *attunev1.SessionRecord {
		s := &attunev1.SessionRecord{
			Id: id, User: &attunev1.Principal{Uid: uid, Name: user}, Job: &attunev1.Job{Kind: "slurm", Id: job}, Hosts: []string{node},
			StartedUnixNano: now.Add(-began).UnixNano(),
		}
		if ended > 0 {
			s.EndedUnixNano = now.Add(-ended).UnixNano()
		}
		return s
	}
	for _, tt := range []struct {
		name string
		of   pick
		want string
	}{
		{"all", pick{}, "a b c"},
		{"user", pick{user: "alice"}, "a c"},
		{"user id", pick{user: "2002"}, "b"},
		{"node", pick{node: "n2"}, "b c"},
		{"job", pick{job: "10"}, "b"},
		{"since", pick{since: cli.Span(time.Hour)}, "a c"}, // a goes on
		{"limit", pick{limit: 1}, "c"},
		{"user and limit", pick{user: "alice", limit: 1}, "c"},
		{"nobody's", pick{user: "carol"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := &attunev1.ListSessionsResponse{
				Registrations: []*attunev1.Registration{{Id: "slurm-9-2001", Executable: registry.HandedOver}, {Id: "site-all", Executable: "*"}},
				Sessions: []*attunev1.SessionRecord{
					session("a", 2001, "alice", "9", "n1", 4*time.Hour, 0),
					session("b", 2002, "bob", "10", "n2", 3*time.Hour, 2*time.Hour),
					session("c", 2001, "alice", "101", "n2", time.Hour, time.Minute),
				},
			}
			tt.of.narrow(list, now)
			var ids []string
			for _, s := range list.GetSessions() {
				ids = append(ids, s.GetId())
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("sessions %q, want %q", got, tt.want)
			}
			if r := list.GetRegistrations(); len(r) != 1 || r[0].GetId() != "site-all" {
				t.Errorf("registrations %v", r)
			}
		})
	}
}

// What was gained is summed up by user or application, of sessions that kept something.
func TestGainsAreSummedUp(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	session := func(user, command string, kept uint32, gain float64, hours time.Duration) *attunev1.SessionRecord {
		return &attunev1.SessionRecord{
			User: &attunev1.Principal{Name: user}, CommandLine: []string{command, "-x"}, Kept: kept, Gain: gain,
			StartedUnixNano: now.Add(-hours * time.Hour).UnixNano(),
		}
	}
	sessions := []*attunev1.SessionRecord{
		session("bob", "/opt/lmp", 1, 2, 1), session("alice", "/usr/bin/lmp", 2, 4, 2), session("alice", "./cfd", 0, 0, 7),
		session("alice", "./cfd", 1, 1.5, 3), session("alice", "./cfd", 1, 0, 1),
	}
	for by, want := range map[string]string{
		"user": "USER   SESSIONS  CHANGES  GAIN   BEST  HOURS\nalice  3         4        2.75x  4x    6.0\nbob    1         1        2x     2x    1.0\n",
		"application": "APPLICATION  SESSIONS  CHANGES  GAIN  BEST  HOURS\ncfd          2         2        1.5x  1.5x  4.0\n" +
			"lmp          2         3        3x    4x    3.0\n",
	} {
		var out strings.Builder
		if err := writeGains(&cli.Env{Stdout: &out}, sumUp(sessions, namesOf[by], now), by, now); err != nil || out.String() != want {
			t.Errorf("by %s: %v\n%swant\n%s", by, err, out.String(), want)
		}
	}
	var out strings.Builder
	if err := writeGains(&cli.Env{Stderr: &out}, sumUp(nil, userOf, now), "user", now); err != nil || !strings.Contains(out.String(), "Nothing was kept in a session") {
		t.Errorf("nothing: %v, %s", err, out.String())
	}
}
