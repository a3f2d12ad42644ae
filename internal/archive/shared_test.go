// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/account"
)

// withSecrets is a task whose account has what others are not to read.
func withSecrets() *Task {
	t := newTask("align", 1)
	t.Account.Provenance = &account.Provenance{
		Inputs: []account.DataFile{{Path: "/in"}}, User: account.User{Name: "ann"}, Jobs: map[string]string{"SLURM_JOB_ID": "5"},
		Environment: map[string]string{"LOGIN": "ann:hunter2"}, Redacted: []string{"TOKEN"},
		Stdout: &account.Captured{Text: "hunter2"}, Stderr: &account.Captured{Text: "hunter2"},
	}
	return t
}

// TestForOthers: a place that several users read gets no secrets of one; whoever adds the task keeps its
// own.
func TestForOthers(t *testing.T) {
	task, plain := withSecrets(), newTask("sort", 1)
	got := forOthers([]*Task{task, plain})
	want := withSecrets()
	p := want.Account.Provenance
	p.Environment, p.Redacted, p.Stdout, p.Stderr = nil, nil, nil, nil
	if diff := cmp.Diff([]*Task{want, plain}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(withSecrets(), task); diff != "" {
		t.Errorf("the task that was given has changed (-was +is)\n%s", diff)
	}
}
