// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// visitAddresses are those of two functions of the program.
func visitAddresses(t *testing.T, pid int) []uint64 {
	t.Helper()
	return []uint64{addressOf(t, pid, "once", objfile.Function), addressOf(t, pid, "visited", objfile.Function)}
}

// A visitor sees what the functions are passed, lets threads go on as often as it
// likes, and makes several calls in the one that it is done with.
func TestMeet(t *testing.T) { eachBreakpoint(t, testMeet) }

func testMeet(t *testing.T) {
	const passed = 100
	target := startVisits(t, 4)
	process := mustOpen(t, target.PID)
	for range 3 {
		var visits [2]int
		var kept [8]byte
		result, err := Meet(t.Context(), process, visitAddresses(t, target.PID), patiently(ExecuteOptions{}), func(v *Visit) (bool, error) {
			visits[v.At()]++
			first, err := v.Argument(0)
			if at := v.At(); err != nil || at == 0 && int32(first) > 3 {
				return true, fmt.Errorf("at %d with %d: %w", at, first, err)
			}
			if visits[0]+visits[1] < passed || visits[0] == 0 || visits[1] == 0 {
				return false, nil
			}
			memory, err := v.Memory()
			if err != nil {
				return true, err
			}
			for n := range uint64(5) {
				if value, err := v.Call(constant(n)); err != nil || value != n {
					return true, fmt.Errorf("call %d: %d, %w", n, value, err)
				}
				if err := v.Write(memory+8*n, binary.LittleEndian.AppendUint64(nil, n)); err != nil {
					return true, err
				}
			}
			return true, v.Read(memory+8*4, kept[:])
		})
		if err != nil || binary.LittleEndian.Uint64(kept[:]) != 4 || result.Thread == 0 || result.Stopped <= 0 {
			t.Fatalf("%v (%+v), kept %v", err, result, kept)
		}
		if got := target.Ask(t, "check"); got != allWell {
			t.Error(got)
		}
	}
}

// The error of a visitor is returned, and the program goes on.
func TestMeetEndsWithError(t *testing.T) {
	target := startVisits(t, 2)
	for _, calls := range []int{0, 2} {
		_, err := Meet(t.Context(), mustOpen(t, target.PID), visitAddresses(t, target.PID), patiently(ExecuteOptions{}), func(v *Visit) (bool, error) {
			for range calls {
				if _, err := v.Call(constant(1)); err != nil {
					return true, err
				}
			}
			return false, os.ErrInvalid
		})
		if !errors.Is(err, os.ErrInvalid) {
			t.Errorf("after %d calls: %v", calls, err)
		}
		if got := target.Ask(t, "check"); got != allWell {
			t.Error(got)
		}
	}
}

// A program that ends while a thread of it stands is noticed.
func TestMeetEndOfProgram(t *testing.T) {
	for _, calls := range []int{0, 1} {
		target := startVisits(t, 2)
		_, err := Meet(t.Context(), mustOpen(t, target.PID), visitAddresses(t, target.PID), patiently(ExecuteOptions{}), func(v *Visit) (bool, error) {
			for range calls {
				if _, err := v.Call(constant(1)); err != nil {
					return true, err
				}
			}
			if err := unix.Kill(target.PID, unix.SIGKILL); err != nil {
				return true, err
			}
			return true, v.Wait(func() bool { return false })
		})
		if !errors.Is(err, ErrInterrupted) {
			t.Errorf("after %d calls: %v", calls, err)
		}
	}
}

// The end of a program that is waited for is taken at once, whichever of its threads
// ends first: nobody else could take it.
func TestEndOfProgramInAmbush(t *testing.T) {
	for range 12 {
		target := startVisits(t, 3)
		process, never := mustOpen(t, target.PID), addressOf(t, target.PID, "never", objfile.Function)
		ended := make(chan error)
		go func() {
			_, _, err := Execute(t.Context(), process, constant(1), ExecuteOptions{At: never, Patience: 2 * patience.Limit})
			ended <- err
		}()
		waitTraced(t, target.PID)
		if err := unix.Kill(target.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := patience.Receive(t, "end", ended); !errors.Is(err, procid.ErrGone) && !errors.Is(err, ErrInterrupted) {
			t.Error(err)
		}
	}
}

const meetVariable = "ATTUNE_TEST_MEET"

// TestMeetHelper keeps a thread standing until it is killed.
func TestMeetHelper(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(meetVariable))
	if err != nil {
		return // part of TestKilledInMeet
	}
	useBreakpoints(t, os.Getenv(probedVariable) != "")
	_, err = Meet(t.Context(), mustOpen(t, pid), visitAddresses(t, pid), patiently(ExecuteOptions{}), func(v *Visit) (bool, error) {
		if os.Getenv("ATTUNE_TEST_CALL") != "" {
			if _, err := v.Call(constant(1)); err != nil {
				return true, err
			}
		}
		fmt.Println("standing")
		return true, v.Wait(func() bool { return false })
	})
	t.Fatal(err)
}

// A thread that stands goes on when the controller is killed, before a call and
// after one.
func TestKilledInMeet(t *testing.T) { eachBreakpoint(t, testKilledInMeet) }

func testKilledInMeet(t *testing.T) {
	target := startVisits(t, 1) // another one could be stopped at the breakpoint just then
	for i := range 6 {
		helper := exec.Command(os.Args[0], "-test.run=^TestMeetHelper$")
		helper.Env = append(os.Environ(), meetVariable+"="+strconv.Itoa(target.PID))
		if i%2 == 1 {
			helper.Env = append(helper.Env, "ATTUNE_TEST_CALL=1")
		}
		if debugRegistersDead() {
			helper.Env = append(helper.Env, probedVariable+"=1")
		}
		out, err := helper.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := helper.Start(); err != nil {
			t.Fatal(err)
		}
		if line, _, err := bufio.NewReader(out).ReadLine(); err != nil || string(line) != "standing" {
			t.Fatalf("%q, %v", line, err)
		}
		if err := helper.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = helper.Wait() // killed
		if got := target.Ask(t, "check"); got != allWell {
			t.Error(got)
		}
	}
}
