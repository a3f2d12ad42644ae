// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Task is a process that whoever starts it hands over, while it waits to
// execute its program: a batch system's plugin, or its user.
type Task struct {
	// PID of the process that will execute the program.
	PID int `json:"pid"`
	// UID of the user whom the program will run as.
	UID uint32 `json:"uid"`
	// Mode is observe, advise or tune.
	Mode string `json:"mode"`
	// Tunlets by name; none: all that the Analyzer has.
	Tunlets []string `json:"tunlets"`
	// Objective is what is to become better, see docs/reference/objective.md; empty: what
	// tunlets go by.
	Objective string `json:"objective,omitempty"`
	// Rank of the task in its step.
	Rank int32 `json:"rank"`
	// Job that it is of.
	Job TaskJob `json:"job"`
}

// TaskJob names a job of a batch system. What is handed over of one job is one
// session, whatever the step: mpirun starts its remote ranks in steps of their
// own.
type TaskJob struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Step string `json:"step"`
}

// Errors of what is handed over, which is answered in different ways.
var (
	errBadTask = errors.New("task")
	errDenied  = errors.New("not allowed")
)

// maxName bounds what a task names.
const maxName = 128

// validate says what is wrong with a task.
func (t Task) validate() error {
	switch {
	case t.PID <= 1:
		return fmt.Errorf("%w: %d is no process id", errBadTask, t.PID)
	case !slices.Contains(policy.Modes, t.Mode):
		return fmt.Errorf("%w: mode %.32q is none of %s", errBadTask, t.Mode, strings.Join(policy.Modes, ", "))
	case len(t.Tunlets) > maxName:
		return fmt.Errorf("%w: %d tunlets", errBadTask, len(t.Tunlets))
	}
	for _, name := range append([]string{t.Job.Kind, t.Job.ID}, t.Tunlets...) {
		if !isName(name) {
			return fmt.Errorf("%w: %.32q is no name: at most %d letters, digits and -_.[]", errBadTask, name, maxName)
		}
	}
	if err := registry.CheckRegistrationID(t.id()); err != nil { // or no Analyzer could ever be told
		return fmt.Errorf("%w: job: %w", errBadTask, err)
	}
	return nil
}

// isName says whether a text can be part of an id.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && strings.IndexFunc(text, func(r rune) bool {
		return !strings.ContainsRune("-_.[]", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// id is that of the registration of the task's job.
func (t Task) id() string {
	return registry.HandedOverID(t.job(), t.UID)
}

func (t Task) job() *attunev1.Job { return &attunev1.Job{Kind: t.Job.Kind, Id: t.Job.ID} }

// registration is what the site is told of the task's job.
func (t Task) registration() *attunev1.Registration {
	return &attunev1.Registration{
		Id: t.id(), Executable: registry.HandedOver, Mode: t.Mode, Tunlets: t.Tunlets, Objective: t.Objective,
		Owner: authn.OfUser(t.UID), Job: t.job(), RegisteredUnixNano: time.Now().UnixNano(),
	}
}

// statusOf is the HTTP status of what went wrong with a task.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errBadTask):
		return http.StatusBadRequest
	case errors.Is(err, errDenied):
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}
