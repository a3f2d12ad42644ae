// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/measure"
)

// subjects are cases of the catalogue that tell while they run how far they got, and
// programs in which a change is wrong.
func subjects(scratch string) (all []catalogue.Case) {
	for _, name := range []string{
		"malloc/numpy", "mpi-progress/C", "omp-threads/numpy with OpenBLAS", "gc/Python", "convoy/Python",
		"stdio/C", "nagle/C", "sockbuf/C", "pipe/C", "workers/too many",
	} {
		all = append(all, catalogue.Named(name))
	}
	for _, w := range wrongs() {
		all = append(all, w.program(scratch))
	}
	return all
}

// wrong is a program with the settings that are best for it, of which a tunlet thinks that
// others would be better.
type wrong struct {
	of     string // case of the catalogue
	tunlet string
	change string // of the tunlet, in YAML
}

func wrongs() []wrong {
	return []wrong{
		{"malloc/numpy", "wrong-malloc", "{setting: glibc.malloc.trim_threshold, to: 65536, description: bytes}"},
		{"omp-threads/numpy with OpenBLAS", "wrong-affinity", `{system: thread.affinity, to: "'0'", description: CPUs}`},
		{"gc/Python", "wrong-gc", "{setting: python.gc.threshold0, to: 100, description: containers}"},
		{"omp-threads/numpy with OpenBLAS", "useless", "{setting: glibc.malloc.top_pad, to: 1048576, description: bytes}"},
	}
}

// program returns the program, for which scratch has the tunlet.
func (w wrong) program(scratch string) catalogue.Case {
	c := catalogue.Named(w.of)
	command := c.Best.Command
	if command == nil {
		command = slices.Concat([]string{"env"}, c.Best.Environment, c.Command)
	}
	return catalogue.Case{
		Name: w.tunlet + "/" + c.Name, Tunlet: w.tunlet, Unit: c.Unit, Format: measure.Native(),
		Needs: c.Needs, Command: command, Flags: []string{"--tunlet-dir", scratch, "--tunlet", w.tunlet},
	}
}

// text is the tunlet. What it goes by is how many blocks the program takes.
func (w wrong) text() string {
	return fmt.Sprintf(`attune: tunlet/1
name: %s
version: "1"
summary: makes a change that does not help
wake: [{levels: {run_time: 3e8}, lasting: 200ms}]
points: [{id: block, hook: malloc}]
lasting: 200ms
symptom: rate.run_time > 3e8
objective:
  name: blocks_per_second
  unit: 1/s
  description: blocks that the program takes per second
  value: point.block.rate
reason: to see whether it is noticed
change: [%s]
max_tries: 1
`, w.tunlet, w.change)
}

// writeTunlets puts the wrong tunlets into a folder.
func writeTunlets(folder string) error {
	for _, w := range wrongs() {
		if err := os.WriteFile(filepath.Join(folder, w.tunlet+".tunlet.yaml"), []byte(w.text()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
