// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
)

// dyingDir tells TestDyingController where to keep its journal.
const dyingDir = "ATTUNE_TEST_DYING"

// TestDyingController is the process that TestRestoreWaitsForTheDying kills: it has one change in
// force, and so much memory that the kernel takes a while to end it.
func TestDyingController(t *testing.T) {
	dir := os.Getenv(dyingDir)
	if dir == "" {
		return // it runs in a process of its own
	}
	pid, err := strconv.Atoi(os.Getenv(first))
	if err != nil {
		t.Fatal(err)
	}
	journal, err := actuate.OpenJournal(dir, strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	const size = 512 << 20
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += os.Getpagesize() {
		memory[i] = 1
	}
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	fmt.Println(a.ApplySet(t.Context(), changesOf(0, actuatetest.MustProcess(t, pid))[1:2], actuate.SetHooks{})[0].GetOutcome())
	select {}
}

// TestRestoreWaitsForTheDying: a controller that was killed has its journal locked until the kernel
// is done with its memory. Whoever comes at once after it still gives back what it left.
func TestRestoreWaitsForTheDying(t *testing.T) {
	tuned, dir := actuatetest.StartTuned(t, "testdata", all), t.TempDir()
	before := tuned.Ask(t, "own")
	command := exec.Command(os.Args[0], "-test.run=^TestDyingController$", "-test.v")
	command.Env = append(os.Environ(), dyingDir+"="+dir, first+"="+strconv.Itoa(tuned.PID))
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Text() != "OUTCOME_APPLIED"; {
		if !lines.Scan() {
			t.Fatal("nothing was changed: ", command.Wait())
		}
		t.Log(lines.Text())
	}
	if now := tuned.Ask(t, "own"); now == before {
		t.Errorf("own is %s before and after", now)
	}
	_ = command.Process.Kill()
	restored, err := all.Restore(dir)
	if err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Errorf("of one change %+v was restored, %v", restored, err)
	}
	if now := tuned.Ask(t, "own"); now != before {
		t.Errorf("own is %s, before %s", now, before)
	}
	_ = command.Wait() // killed
}
