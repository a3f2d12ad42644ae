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

// subject is a program, and how many times as long as the others it has to run.
type subject struct {
	catalogue.Case
	times float64
}

// subjects are cases of the catalogue that tell while they run how far they got, and
// programs in which a change is wrong.
func subjects(scratch string) (all []subject) {
	for _, name := range []string{
		"malloc/numpy", "mpi-progress/C", "omp-threads/numpy with OpenBLAS", "gc/Python", "convoy/Python",
		"stdio/C", "nagle/C", "sockbuf/C", "pipe/C", "workers/too many",
	} {
		all = append(all, subject{catalogue.Named(name), 1})
	}
	for _, t := range traps {
		all = append(all, t.program(scratch))
	}
	return all
}

// trap is a program with the settings that are best for it, of which a tunlet thinks that
// others would be better.
type trap struct {
	of     string // case of the catalogue
	tunlet string
	change string  // of the tunlet, in YAML
	times  float64 // see subject
}

var traps = []trap{
	{"malloc/numpy", "wrong-malloc", "{setting: glibc.malloc.trim_threshold, to: 65536, description: bytes}, {setting: glibc.malloc.top_pad, to: 0, description: bytes}", 1},
	{"omp-threads/numpy with OpenBLAS", "wrong-affinity", `{system: thread.affinity, to: "'0'", description: CPUs}`, 1},
	{"gc/Python", "wrong-gc", "{setting: python.gc.threshold0, to: 100, description: containers}", 1},
	// That nothing is gained takes sixteen pairs of turns.
	{"omp-threads/numpy with OpenBLAS", "useless", "{setting: glibc.malloc.top_pad, to: 1048576, description: bytes}", 2},
}

// program returns the program, for which scratch has the tunlet.
func (t trap) program(scratch string) subject {
	c := catalogue.Named(t.of)
	command := c.Best.Command
	if command == nil {
		command = slices.Concat([]string{"env"}, c.Best.Environment, c.Command)
	}
	return subject{times: t.times, Case: catalogue.Case{
		Name: t.tunlet + "/" + c.Name, Format: measure.Native(), Needs: c.Needs, Command: command,
		Flags: []string{"--tunlet-dir", scratch, "--tunlet", t.tunlet},
	}}
}

// text is the tunlet. What it goes by is how many blocks the program takes.
func (t trap) text() string {
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
`, t.tunlet, t.change)
}

// writeTunlets puts the tunlets of the traps into a folder.
func writeTunlets(folder string) error {
	for _, t := range traps {
		if err := os.WriteFile(filepath.Join(folder, t.tunlet+".tunlet.yaml"), []byte(t.text()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
