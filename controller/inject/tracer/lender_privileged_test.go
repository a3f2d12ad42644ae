// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package tracer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// lentTold is how /proc tells of the priority that is lent.
const lentTold = -1 - lentPriority

// priorityOf is the 18th field of a thread's stat.
func priorityOf(t *testing.T, tid int) int {
	t.Helper()
	content := files.Read(t, fmt.Sprintf("/proc/%d/stat", tid))
	_, after, _ := bytes.Cut(content, []byte(") "))
	priority, err := strconv.Atoi(string(bytes.Fields(after)[15]))
	if err != nil {
		t.Fatal(err)
	}
	return priority
}

// comesTo ends the test unless a thread comes to a priority; more is done
// between looks.
func comesTo(t *testing.T, tid, want int, more func()) {
	t.Helper()
	for until := time.Now().Add(patience.Limit); priorityOf(t, tid) != want; more() {
		if time.Now().After(until) {
			t.Fatalf("thread %d has priority %d, want %d", tid, priorityOf(t, tid), want)
		}
	}
}

func lookAgain() { time.Sleep(time.Millisecond) }

// lendTo lends, again where the giver was not back yet.
func lendTo(t *testing.T, l *lender, tid int) {
	t.Helper()
	comesTo(t, tid, lentTold, func() { l.end(); lookAgain(); l.lend(tid) })
}

// mustLend makes a lender for a test, whose OS thread ends with it.
func mustLend(t *testing.T) *lender {
	t.Helper()
	runtime.LockOSThread()
	l := newLender()
	if l == nil {
		t.Fatal("nothing can be lent")
	}
	t.Cleanup(l.close)
	return l
}

// TestLend: a thread has the priority until it is taken back or was had for too
// long, and the program could not tell.
func TestLend(t *testing.T) {
	h := targets.StartProgram(t, "plain")
	ordinary, own := priorityOf(t, h.PID), priorityOf(t, unix.Gettid())
	before, err := unix.SchedGetAttr(h.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := mustLend(t)
	for _, end := range []func(){l.end, l.expire} {
		lendTo(t, l, h.PID)
		if now, err := unix.SchedGetAttr(h.PID, 0); err != nil || *now != *before {
			t.Errorf("scheduled by %+v, %v, want %+v", now, err, before)
		}
		comesTo(t, h.PID, ordinary, func() { end(); lookAgain() })
	}
	l.end() // the giver may have been back by itself: a signal interrupted it
	if now := priorityOf(t, unix.Gettid()); now != own {
		t.Errorf("the borrower stays at priority %d, want %d", now, own)
	}
	h.Right(t)
	h.Finish(t)
}

// computing is the second thread of a program, the one that computes.
func computing(t *testing.T, pid int) int {
	t.Helper()
	threads, err := procid.Threads(pid)
	if err != nil || len(threads) != 2 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	return threads[1]
}

// pin lets threads run on one processor only.
func pin(t *testing.T, processor int, tids ...int) {
	t.Helper()
	var set unix.CPUSet
	set.Set(processor)
	for _, tid := range tids {
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoanEndsOnOneProcessor: a borrower that computes keeps nobody from taking
// back what it has, also where all share a processor.
func TestLoanEndsOnOneProcessor(t *testing.T) {
	h := targets.StartProgram(t, "plain")
	tid := computing(t, h.PID)
	ordinary := priorityOf(t, tid)
	l := mustLend(t)
	pin(t, allowed(t)[0], tid, l.giver, unix.Gettid())
	lendTo(t, l, tid)
	comesTo(t, tid, ordinary, func() { lookAgain(); l.expire() })
	h.Right(t)
	h.Finish(t)
}

// allowed are the processors that this thread may run on.
func allowed(t *testing.T) (list []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list
}

// TestNothingLentOnOneProcessor: nobody could take it back from a borrower if
// the controller were killed.
func TestNothingLentOnOneProcessor(t *testing.T) {
	runtime.LockOSThread()
	pin(t, allowed(t)[0], unix.Gettid())
	if l := newLender(); l != nil {
		l.close()
		t.Error("a lender on one processor")
	}
}

// TestOneLoanAtATime: as many borrowers as processors could keep all of them.
func TestOneLoanAtATime(t *testing.T) {
	first, second := targets.StartProgram(t, "plain"), targets.StartProgram(t, "plain")
	ordinary := priorityOf(t, second.PID)
	l, other := mustLend(t), mustLend(t)
	lendTo(t, l, first.PID)
	for range 20 {
		other.lend(second.PID)
		if got := priorityOf(t, second.PID); got != ordinary {
			t.Fatalf("priority %d while another one is lent to, want %d", got, ordinary)
		}
		other.end()
		lookAgain()
	}
	l.end()
	lendTo(t, other, second.PID)
	other.end()
	first.Finish(t)
	second.Finish(t)
}

const lendVariable = "ATTUNE_TEST_LEND"

// TestLendHelper lends until it is killed.
func TestLendHelper(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(lendVariable))
	if err != nil {
		return // it is part of TestKilledLender
	}
	lendTo(t, mustLend(t), pid)
	fmt.Println("lent")
	time.Sleep(time.Hour)
}

// TestKilledLender: the loan ends with the controller.
func TestKilledLender(t *testing.T) {
	h := targets.StartProgram(t, "plain")
	ordinary := priorityOf(t, h.PID)
	helper := exec.Command(os.Args[0], "-test.run=^TestLendHelper$")
	helper.Env = append(os.Environ(), lendVariable+"="+strconv.Itoa(h.PID))
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if got := priorityOf(t, h.PID); got != lentTold {
		t.Errorf("priority %d, want %d", got, lentTold)
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait() // killed
	comesTo(t, h.PID, ordinary, lookAgain)
	h.Right(t)
	h.Finish(t)
}

// TestLendToTheEnd: a thread that is lent to ends, and the next one gets it.
func TestLendToTheEnd(t *testing.T) {
	l := mustLend(t)
	for range 3 {
		h := targets.StartProgram(t, "plain")
		lendTo(t, l, h.PID)
		h.Finish(t)
	}
}
