// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
)

// A source follows the command's processes, and knows what those took that have
// ended.
type source interface {
	// fork calls start, which forks the command.
	fork(start func() error) error
	// begin says which process is the command.
	begin(pid int)
	// ended is called while the command is a zombie.
	ended()
	// look returns what there is now. It may be called beside the other functions.
	look() (now, error)
	// fill fills in what the source knows after the command's end. start is the
	// account's; usage is what the kernel said of the command when it was reaped,
	// seen what the last look saw of all.
	// mark is the most resident memory that a single process had, 0 if that is not
	// known; all says whether that of every process is.
	fill(a *account.Account, start time.Time, usage unix.Rusage, seen taken) (mark uint64, all bool)
	// close ends the source.
	close() error
}

// now is what there is at one moment.
type now struct {
	// alive are the processes that have not ended.
	alive []living
	// total is how many there were, peak the most at one time; 0: not known.
	total, peak uint64
	// done is what the threads took that are done with.
	done taken
	// ending are processes that have ended and have threads that the kernel is not done with: what
	// those took is not in done yet.
	ending []living
	// moved says that something ended between done and the lists, and may be in neither.
	moved bool
	// unwaited are processes that have ended and were not waited for yet: what they took is
	// nowhere else. Only where done does not have them.
	unwaited []int
	// begun is when the look began, and worked the CPU time of its thread then.
	begun  time.Time
	worked time.Duration
}

// living is a process that has not ended.
type living struct {
	pid int
	// start is its time since boot; 0: not known.
	start time.Duration
	// done is what those of its threads took that are done with.
	done taken
	// firstDone says that its first thread is one of these.
	firstDone bool
	// whole says that /proc/PID is to be asked for all that the process took and
	// whatever it waited for: there is nobody who knew of that before.
	whole bool
	// name and parent as of the last look.
	name    string
	parent  int
	threads uint64
}

// taken is an amount of everything that adds up.
type taken struct {
	cpu, user, system, wait                          time.Duration // wait: ready to run, without a CPU
	read, written, readCalls, writtenCalls           uint64
	storageRead, storageWritten                      uint64
	voluntary, involuntary, minorFaults, majorFaults uint64
}

// combine adds more, or takes it away: sign is 1 or -1.
func (t *taken) combine(more taken, sign int64) {
	by := uint64(sign) // which counts modulo 2^64
	t.cpu += time.Duration(sign) * more.cpu
	t.user += time.Duration(sign) * more.user
	t.system += time.Duration(sign) * more.system
	t.wait += time.Duration(sign) * more.wait
	t.read += by * more.read
	t.written += by * more.written
	t.readCalls += by * more.readCalls
	t.writtenCalls += by * more.writtenCalls
	t.storageRead += by * more.storageRead
	t.storageWritten += by * more.storageWritten
	t.voluntary += by * more.voluntary
	t.involuntary += by * more.involuntary
	t.minorFaults += by * more.minorFaults
	t.majorFaults += by * more.majorFaults
}

func (t *taken) add(more taken) { t.combine(more, 1) }

// keep raises what never falls to what it was before.
func (t *taken) keep(before taken) {
	t.cpu = max(t.cpu, before.cpu)
	t.read, t.written = max(t.read, before.read), max(t.written, before.written)
	t.readCalls, t.writtenCalls = max(t.readCalls, before.readCalls), max(t.writtenCalls, before.writtenCalls)
}

// subtract takes away what is part of t.
func (t *taken) subtract(part taken) {
	part.storageWritten = min(t.storageWritten, part.storageWritten)
	t.combine(part, -1)
}

func (t *taken) io() account.IO {
	return account.IO{
		Read: new(t.read), Written: new(t.written), ReadCalls: new(t.readCalls), WrittenCalls: new(t.writtenCalls),
		StorageRead: new(t.storageRead), StorageWritten: new(t.storageWritten),
	}
}

func (t *taken) switches() account.Switches {
	return account.Switches{Voluntary: new(t.voluntary), Involuntary: new(t.involuntary)}
}

func (t *taken) faults() account.Faults {
	return account.Faults{Minor: new(t.minorFaults), Major: new(t.majorFaults)}
}

// Fields that a taken fills in.
var takenFields = []string{
	"cpu_seconds", "io.read_bytes", "io.written_bytes", "io.read_calls", "io.written_calls",
	"io.storage_read_bytes", "io.storage_written_bytes", "context_switches.voluntary", "context_switches.involuntary",
	"faults.minor", "faults.major",
}

// fillTaken sets the account's own numbers, how good they are, and what they come from.
func fillTaken(a *account.Account, t taken, accuracy account.Accuracy, source string) {
	a.CPUSeconds, a.UserSeconds, a.SystemSeconds = new(t.cpu.Seconds()), new(t.user.Seconds()), new(t.system.Seconds())
	a.IO, a.ContextSwitches, a.Faults = t.io(), t.switches(), t.faults()
	a.Note(accuracy, source, takenFields...)
	if t.wait > 0 {
		a.CPUWaitSeconds = new(t.wait.Seconds())
		a.Note(accuracy, source, "cpu_wait_seconds")
	}
	// Ticks see where a thread is; the kernel scales that to the exact sum.
	if accuracy == account.Exact {
		accuracy = account.Sampled
	}
	a.Note(accuracy, source, "user_seconds", "system_seconds")
}
