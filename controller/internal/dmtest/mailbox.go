// SPDX-License-Identifier: Apache-2.0

package dmtest

import (
	"sync/atomic"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Command is a mailbox slot of the application.
type Command struct {
	app *App
	at  uint64
}

// Command returns a mailbox slot.
func (a *App) Command(slot int) Command {
	return Command{a, *a.U64(abi.HeaderMailboxOffsetAt) + uint64(slot)*abi.CommandBytes}
}

// U32 is a 4-byte field.
func (c Command) U32(at uint64) *uint32 {
	return c.app.u32(c.at + at)
}

// U64 is an 8-byte field; args is the first of the arguments.
func (c Command) U64(at uint64) *uint64 {
	return c.app.u64(c.at + at)
}

// Arg is an argument.
func (c Command) Arg(i int) uint64 {
	return *c.app.u64(c.at + abi.CommandArgsAt + 8*uint64(i))
}

// Claim takes the command if it may run in one of the families.
func (c Command) Claim(families uint32) bool {
	posted, claimed := uint32(abi.CmdPosted), uint32(abi.CmdClaimed)
	return atomic.LoadUint32(c.U32(abi.CommandStateAt)) == posted && *c.U32(abi.CommandAtAt)&families != 0 &&
		atomic.CompareAndSwapUint32(c.U32(abi.CommandStateAt), posted, claimed)
}

// GiveBack leaves a claimed command to other threads.
func (c Command) GiveBack() { atomic.StoreUint32(c.U32(abi.CommandStateAt), uint32(abi.CmdPosted)) }

// Finish answers a claimed command.
func (c Command) Finish(tid int, point, result uint64, errno int) {
	*c.U64(abi.CommandResultAt) = result
	*c.U32(abi.CommandErrorAt) = uint32(errno)
	*c.U32(abi.CommandDoneByAt) = uint32(tid)
	*c.U64(abi.CommandDonePointAt) = point
	atomic.StoreUint32(c.U32(abi.CommandStateAt), uint32(abi.CmdDone))
}

// SafePoint does what a hook of the families does when its control word says
// that there is mail: it runs the commands that may run there, with the sum of
// their arguments as result, and returns how many.
func (a *App) SafePoint(tid, point int, families uint32) int {
	if a.Control(point)&uint32(abi.CtlMailbox) == 0 {
		return 0
	}
	ran := 0
	for i := range int(abi.MailboxCount) {
		c := a.Command(i)
		if !c.Claim(families) {
			continue
		}
		var sum uint64
		for arg := range 8 {
			sum += c.Arg(arg)
		}
		c.Finish(tid, uint64(point), sum, 0)
		ran++
	}
	return ran
}
