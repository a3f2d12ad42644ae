// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// The owner's objective is measured in a session of a service: in the output of a user's
// processes, as far as it is a file of theirs, and by a point.
func TestOwnersObjective(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	rows := map[string]struct {
		text  string
		owner int // of the output
		says  string
	}{
		"output":              {"output:^step", nobody, ""},
		"a file by its name":  {"file:out.log:^step", nobody, ""},
		"a point":             {"point:libc.so.6:write", nobody, ""},
		"a file of root's":    {"output:^step", 0, "is a file of user 0"},
		"a file that is none": {"file:/etc/shadow:.", nobody, "no process was found that has /etc/shadow open"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := objective.Parse(row.text)
			if err != nil {
				t.Fatal(err)
			}
			config := analyzer.Config{Mode: "observe", Command: []string{"sh"}, JobID: "own", NoTunlets: true, Objective: &spec}
			if spec.Kind != objective.Point {
				config.NodesMeasure = row.text
			}
			s := mustSite(t, config)
			program := s.path("program")
			if out, err := exec.Command("cp", "/bin/sh", program).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			output, err := os.Create(s.path("out.log"))
			if err == nil {
				err = output.Chown(row.owner, row.owner)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			daemon := s.attuned()
			s.register("r1", program, "observe")
			command := exec.Command(program, "-c", "while echo step; do sleep 0.02; done")
			command.Stdout = output
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			patience.Until(t, "values, or why there are none", func() bool {
				r := s.analyzer.Report()
				if row.says == "" {
					return r.Objective != nil && r.Objective.Values > 5 && r.Objective.Mean != nil && *r.Objective.Mean > 0
				}
				for _, remark := range r.Remarks {
					if strings.Contains(remark.Text, row.says) {
						return r.Objective == nil || r.Objective.Values == 0
					}
				}
				return false
			})
			_ = command.Process.Kill()
			_ = command.Wait()
			s.stop(daemon)
			s.analyzer.Finish(context.Background(), nil)
		})
	}
}
