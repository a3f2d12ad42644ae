// SPDX-License-Identifier: Apache-2.0

package dmtest

import "sync/atomic"

// Command is a mailbox slot of the application.
type Command struct {
	app *App
	at  uint64
}

// Command returns a mailbox slot.
func (a *App) Command(slot int) Command {
	return Command{a, *a.U64("mailbox_offset") + uint64(slot)*a.Layout["attune_command"]}
}

// U32 is a 4-byte field.
func (c Command) U32(field string) *uint32 {
	return c.app.u32(c.at + c.app.Layout["attune_command."+field])
}

// U64 is an 8-byte field; args is the first of the arguments.
func (c Command) U64(field string) *uint64 {
	return c.app.u64(c.at + c.app.Layout["attune_command."+field])
}

// Arg is an argument.
func (c Command) Arg(i int) uint64 {
	return *c.app.u64(c.at + c.app.Layout["attune_command.args"] + 8*uint64(i))
}

// Claim takes the command if it may run in one of the families.
func (c Command) Claim(families uint32) bool {
	posted, claimed := uint32(c.app.Layout["ATTUNE_CMD_POSTED"]), uint32(c.app.Layout["ATTUNE_CMD_CLAIMED"])
	return atomic.LoadUint32(c.U32("state")) == posted && *c.U32("at")&families != 0 &&
		atomic.CompareAndSwapUint32(c.U32("state"), posted, claimed)
}

// Finish answers a claimed command.
func (c Command) Finish(tid int, point, result uint64, errno int) {
	*c.U64("result") = result
	*c.U32("error") = uint32(errno)
	*c.U32("done_by") = uint32(tid)
	*c.U64("done_at") = 42
	*c.U64("done_point") = point
	atomic.StoreUint32(c.U32("state"), uint32(c.app.Layout["ATTUNE_CMD_DONE"]))
}

// SafePoint does what a hook of the families does when its control word says
// that there is mail: it runs the commands that may run there, with the sum of
// their arguments as result, and returns how many.
func (a *App) SafePoint(tid, point int, families uint32) int {
	if a.Control(point)&uint32(a.Layout["ATTUNE_CTL_MAILBOX"]) == 0 {
		return 0
	}
	ran := 0
	for i := range int(a.Layout["ATTUNE_MAILBOX_COUNT"]) {
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
