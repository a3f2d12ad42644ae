// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/objective"
)

// Objective is what the owner wants to be better, ready to be measured. The zero value is none.
type Objective struct {
	spec   *objective.Spec
	source *objective.Source // nil: it is measured by the session
	nodes  string            // the text of one that the controller measures; else empty
}

// OpenObjective prepares to measure what the settings say, from now on, for a program that has the
// standard streams of this process. An error has the code for usage.
func OpenObjective(text string) (Objective, error) {
	return openObjective(text, []objective.Stream{{Name: "standard output", Path: "/proc/self/fd/1"}, {Name: "standard error", Path: "/proc/self/fd/2"}})
}

// OpenObjectiveOf is the same for processes that run already. It refuses a command where they are
// another user's: whoever owns them has not asked for it.
func OpenObjectiveOf(text string, pids []int) (Objective, error) {
	var output []objective.Stream
	for _, pid := range pids {
		output = append(output,
			objective.Stream{Name: fmt.Sprintf("standard output of process %d", pid), Path: fmt.Sprintf("/proc/%d/fd/1", pid)},
			objective.Stream{Name: fmt.Sprintf("standard error of process %d", pid), Path: fmt.Sprintf("/proc/%d/fd/2", pid)})
	}
	o, err := openObjective(text, output)
	if err != nil || o.spec == nil || o.spec.Kind != objective.Command {
		return o, err
	}
	for _, pid := range pids {
		owner, err := procs.Owner(pid)
		if err == nil && owner != os.Geteuid() {
			return Objective{}, exitcode.UsageError(fmt.Errorf("--objective %q would run as you, and process %d is of user %s", text, pid, procs.UserName(owner)),
				"attach as that user, or measure with point: or file:")
		}
	}
	return o, nil
}

// OpenObjectiveOnNode is the same for all processes of a packed program on this node, which
// are there in a moment: their output is looked for by the controller. An error says why it
// cannot be measured; the program runs all the same, and the Objective stands.
func OpenObjectiveOnNode(text string) (Objective, error) {
	if text == "" {
		return Objective{}, nil
	}
	spec, err := objective.Parse(text)
	if err != nil { // the settings were looked at
		return Objective{}, err
	}
	if spec.Kind == objective.Output {
		return Objective{spec: &spec, nodes: text}, nil
	}
	source, err := objective.Open(spec, nil)
	return Objective{spec: &spec, source: source}, err
}

func openObjective(text string, output []objective.Stream) (Objective, error) {
	if text == "" {
		return Objective{}, nil
	}
	spec, err := objective.Parse(text)
	if err != nil { // the settings were looked at
		return Objective{}, err
	}
	source, err := objective.Open(spec, output)
	if err != nil {
		return Objective{}, exitcode.UsageError(fmt.Errorf("--objective %q: %w", text, err), remedies[spec.Kind])
	}
	return Objective{spec: &spec, source: source}, nil
}

// remedies say what to do where an objective cannot be measured.
var remedies = map[objective.Kind]string{
	objective.Output: "send it to a file (> out.log, and tail -f out.log to see it), or measure with file: or point:",
	objective.File:   "name a regular file that you may read",
}

// measure tells an Analyzer, if there is one, until ctx ends. What is on a file system that
// does not answer is not waited for.
func (o Objective) measure(ctx context.Context, a *analyzer.Analyzer) {
	if o.source == nil || a == nil {
		return
	}
	go func() {
		defer o.source.Close()
		o.source.Run(ctx, objective.Sink{
			Value: a.Measured,
			Say:   func(text string) { a.Remark("your objective: " + text) },
		})
	}()
}
