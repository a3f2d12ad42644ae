// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStarvedHelper: one that waits for a processor does not hang, and its user is not
// refused for it.
func TestStarvedHelper(t *testing.T) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	itself, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	on := []string{"taskset", "-c", fmt.Sprint(cpu)}
	busy := exec.Command(on[0], append(on[1:], "sh", "-c", "while :; do :; done")...)
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait() // killed
	}()
	if err := exec.Command(itself, Argument).Run(); err != nil { // its pages are in memory from now on
		t.Fatal(err)
	}
	const short = time.Second // a third of what the answer takes
	p, _ := mustPool(t, Options{Command: append(on, "nice", "-n", "19", itself, Argument), Patience: short})
	if _, err := work().Ask(t.Context(), p, harmless, ""); err != nil || len(p.Refused()) != 0 {
		t.Errorf("error %v, refused %v", err, p.Refused())
	}
}
