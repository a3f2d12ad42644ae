// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"bufio"
	"fmt"
	"os/exec"
	"testing"
)

// TestStaticProbesAreCounted: the second probe is reached only while the
// kernel keeps the semaphore up for us.
func TestStaticProbesAreCounted(t *testing.T) {
	binary := mustCompile(t, "../../../../internal/objfile/usdt/testdata/probes.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := exec.Command(binary)
			stdin, err := target.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := target.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := target.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				stdin.Close()
				if err := target.Wait(); err != nil {
					t.Errorf("the program ended with %v", err)
				}
			}()
			const rounds = 1000
			for i, name := range []string{"work", "watched", "done"} {
				point := uint16(i + 1)
				mustAttach(t, u, Spec{Path: binary, Symbols: mustFindStatic(t, binary, name), Point: point})
				mustWatch(t, u, target.Process.Pid, point)
			}
			fmt.Fprintln(stdin, rounds)
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "done\n" {
				t.Fatalf("%q, %v", line, err)
			}
			for i, want := range []uint64{rounds, rounds, 1} {
				if got := mustAggregate(t, u, target.Process.Pid, uint16(i+1)); got.Count != want {
					t.Errorf("point %d: %d hits, want %d", i+1, got.Count, want)
				}
			}
		})
	}
}
