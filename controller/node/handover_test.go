// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustTuneAll is the policy of a site that has everybody tuned.
func mustTuneAll(t *testing.T) *policy.Policy {
	t.Helper()
	all, err := policy.Parse("policy.yaml", []byte("service:\n  - mode: tune\n"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A task that asks for a tunlet which no Analyzer has, or for an objective that is none, is
// refused, with what there is, and noted for its user. One with an unknown tunlet is taken
// where it is not known which there are.
func TestWhatCannotBeHadIsRefused(t *testing.T) {
	pid, uid := ofUser(t)
	all := mustTuneAll(t)
	away := func(ctx context.Context, _ []string) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	here := func(context.Context, []string) ([]string, error) { return []string{"gc", "malloc"}, nil }
	every := func(_ context.Context, wanted []string) ([]string, error) { return wanted, nil }
	for _, tt := range []struct {
		name  string
		asked Task
		there func(context.Context, []string) ([]string, error)
		want  string // the error begins so; empty: it is taken
	}{
		{"unknown", Task{Tunlets: []string{"malloc", "nosuch", "gone"}}, here, "task: the site has no tunlet nosuch, gone; there are: gc, malloc"},
		{"known", Task{Tunlets: []string{"malloc"}, Objective: "output:^step"}, here, ""},
		{"all", Task{}, here, ""},
		{"no Analyzer answers", Task{Tunlets: []string{"nosuch"}}, away, ""},
		{"Analyzers do not say", Task{Tunlets: []string{"nosuch"}}, func(context.Context, []string) ([]string, error) { return nil, nil }, ""},
		{"no objective", Task{Objective: "faster"}, here, "task: objective: it says not where to look"},
		{"too long for a registration", Task{Tunlets: slices.Repeat([]string{strings.Repeat("x", maxName)}, maxName)}, every, "task: registration of "},
		{"a command", Task{Objective: "command:id"}, here, "task: objective: a service runs no command of a user's"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.policy, b.registrations.tunlets = all, tt.there
				began := time.Now()
				asked := tt.asked
				asked.PID, asked.UID, asked.Mode, asked.Job = pid, uid, "tune", TaskJob{Kind: "slurm", ID: "7"}
				_, err := b.handover.takeTask(b.t.Context(), 0, asked)
				if waited := time.Since(began); waited > tunletsWithin {
					t.Errorf("its task has waited %v", waited)
				}
				refused := b.notes.mismatches
				if tt.want == "" {
					if err != nil || len(refused) != 0 {
						t.Errorf("not taken: %v, %v", err, refused)
					}
					return
				}
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) || statusOf(err) != http.StatusBadRequest {
					t.Errorf("answer %v, want %q", err, tt.want)
				}
				if len(refused) != 1 || refused[0].GetUid() != uid || "task: "+refused[0].GetReason() != err.Error() {
					t.Errorf("noted: %v", refused)
				}
				if n := len(b.sessions.list()); n != 0 {
					t.Errorf("%d sessions", n)
				}
			})
		})
	}
}

// What a later step of a job asks for, and its session does not have, its user is told.
func TestWishesOfLaterSteps(t *testing.T) {
	pid, uid := ofUser(t)
	all := mustTuneAll(t)
	inBubble(t, func(b *bench) {
		b.policy = all
		b.registrations.tunlets = func(context.Context, []string) ([]string, error) { return []string{"gc", "malloc"}, nil }
		for _, tt := range []struct{ step, mode, tunlets, objective, want string }{
			{"0", "tune", "gc,malloc", "output:^step", ""},
			{"1", "tune", "malloc,gc", "output:^step", ""},
			{"2", "tune", "gc", "output:^step", "not used of what this step asks for: tunlets; "},
			{"3", "observe", "gc,malloc", "output:^iteration", "not used of what this step asks for: mode, objective; "},
		} {
			got, err := b.handover.takeTask(b.t.Context(), 0, Task{
				PID: pid, UID: uid, Mode: tt.mode, Tunlets: strings.Split(tt.tunlets, ","), Objective: tt.objective,
				Job: TaskJob{Kind: "slurm", ID: "7", Step: tt.step},
			})
			if err != nil || !strings.HasPrefix(got.note, tt.want) || tt.want == "" && got.note != "" {
				t.Errorf("step %s: %v, told %q, want %q", tt.step, err, got.note, tt.want)
			}
		}
	})
}

// Whoever looks at the node sees which tasks it has left alone, and why.
func TestRefusedTaskIsNoted(t *testing.T) {
	pid, uid := ofUser(t)
	all := mustTuneAll(t)
	inBubble(t, func(b *bench) {
		b.policy = all
		take := func(job string) error {
			_, err := b.handover.takeTask(b.t.Context(), 0, Task{PID: pid, UID: uid, Mode: "tune", Job: TaskJob{Kind: "slurm", ID: job}})
			return err
		}
		if err := take("7"); err != nil {
			t.Fatal(err)
		}
		const want = "belongs to the session of registration slurm-7-"
		err := take("8")
		noted := b.notes.mismatches
		if err == nil || !strings.Contains(err.Error(), want) || statusOf(err) != http.StatusForbidden {
			t.Errorf("answer %v", err)
		}
		if len(noted) != 1 || noted[0].GetUid() != uid || int(noted[0].GetPid()) != pid || !strings.Contains(noted[0].GetReason(), want) {
			t.Errorf("noted: %v", noted)
		}
	})
}

// What a policy says of programs holds for a task once it executes one: what it may get at the
// most takes it, what each program may get is asked then, and the library comes later where it
// may be one that is to be left alone.
func TestProgramsOfTasks(t *testing.T) {
	pid, uid := ofUser(t)
	for _, tt := range []struct {
		name, rules   string
		mode, refused string // of the session; why it is not taken
		library       bool   // comes with the program
		vasp, lmp     string // what each program gets
		other         string
		unknown       string
	}{
		{"one is denied", `[{mode: none, executables: ["vasp*"], reason: licence}, {mode: tune, owners: ["role:user"]}]`, "tune", "", false, "none", "tune", "tune", "none"},
		{"some are tuned", `[{mode: tune, executables: ["/opt/apps/*"]}]`, "tune", "", false, "tune", "tune", "none", "none"},
		{"some are observed", `[{mode: observe, executables: ["vasp*"]}, {mode: tune}]`, "tune", "", true, "observe", "tune", "tune", "tune"},
		{"all are observed", `[{mode: observe}]`, "observe", "", true, "observe", "observe", "observe", "observe"},
		{"none is for users", `[{mode: tune, owners: ["role:admin"], executables: ["/opt/apps/*"]}]`, "", "allows any program, run by user", false, "", "", "", ""},
		{"all are denied", `[{mode: none, reason: no}]`, "", "rule 1 of policy.yaml denies it: no", false, "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules, err := policy.Parse("policy.yaml", []byte("service: "+tt.rules))
			if err != nil {
				t.Fatal(err)
			}
			inBubble(t, func(b *bench) {
				b.policy = rules
				got, err := b.handover.takeTask(b.t.Context(), 0, Task{PID: pid, UID: uid, Mode: "tune", Job: TaskJob{Kind: "slurm", ID: "7"}})
				if tt.refused != "" {
					if err == nil || !strings.Contains(err.Error(), tt.refused) {
						t.Errorf("taken, or for another reason not: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				c := b.made[0].config
				if library := len(got.env) > 0; library != tt.library || c.Session.Mode != tt.mode {
					t.Errorf("library %v, mode %q, want %v, %q", library, c.Session.Mode, tt.library, tt.mode)
				}
				for program, want := range map[string]string{"/opt/apps/vasp_std": tt.vasp, "/opt/apps/lmp": tt.lmp, "/home/u/a.out": tt.other, "": tt.unknown} {
					gets := "tune"
					if c.Untouched(program) != "" {
						gets = "observe"
					}
					if c.Denied(program) != "" {
						gets = "none"
					}
					if gets != want {
						t.Errorf("%q gets %s, want %s: %s", program, gets, want, c.Untouched(program))
					}
				}
			})
		})
	}
}

// Processes of jobs that are handed over are given, so that none are looked for.
func TestHandedOverIsNotLookedFor(t *testing.T) {
	list := toFind(map[string]*attunev1.Registration{
		"slurm-7-1000": {Id: "slurm-7-1000", Executable: registry.HandedOver}, "r": {Id: "r", Executable: "solver"},
	})
	if len(list) != 1 || list[0].GetId() != "r" {
		t.Errorf("looked for: %v", list)
	}
}
