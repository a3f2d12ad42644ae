// SPDX-License-Identifier: Apache-2.0

package track

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Sizes of the wire format: struct nlmsghdr, struct cn_msg, and the head of
// struct proc_event.
const (
	netlinkHead, connectorHead, eventHead = 16, 20, 16
	eventStart                            = netlinkHead + connectorHead
)

// connectorGroup is CN_IDX_PROC.
const connectorGroup = 1

// Events of enum proc_cn_event that are understood.
const (
	connectorNone = 0
	connectorFork = 0x1
	connectorExec = 0x2
	connectorExit = 0x80000000
)

func connectorRequest(operation, ack uint32) []byte {
	const size = eventStart + 4
	data := make([]byte, 0, size)
	order := binary.NativeEndian
	data = order.AppendUint32(data, size)
	data = order.AppendUint16(data, unix.NLMSG_DONE)
	data = append(data, make([]byte, 10)...) // flags, sequence, port
	data = order.AppendUint32(data, 1)       // CN_IDX_PROC
	data = order.AppendUint32(data, 1)       // CN_VAL_PROC
	data = order.AppendUint32(data, 0)       // sequence
	data = order.AppendUint32(data, ack)
	data = order.AppendUint16(data, 4) // length of what follows
	data = order.AppendUint16(data, 0) // flags
	return order.AppendUint32(data, operation)
}

// connectorMessage is struct proc_event with the fields that matter here.
type connectorMessage struct {
	what, ack uint32
	time      uint64
	pid, tgid int32 // exec, exit: the process; fork: the child
	parent    int32 // fork: the parent's thread group
	status    uint32
}

var errShortConnector = errors.New("message is too short")

func parseConnector(data []byte) (connectorMessage, error) {
	order := binary.NativeEndian
	if len(data) < eventStart+eventHead+8 {
		return connectorMessage{}, errShortConnector
	}
	m := connectorMessage{ack: order.Uint32(data[netlinkHead+12:])}
	event := data[eventStart:]
	m.what, m.time = order.Uint32(event), order.Uint64(event[8:])
	words := event[eventHead:]
	word := func(i int) int32 { return int32(order.Uint32(words[4*i:])) }
	need := map[uint32]int{connectorNone: 1, connectorFork: 4, connectorExec: 2, connectorExit: 4}[m.what]
	if len(words) < 4*need {
		return connectorMessage{}, errShortConnector
	}
	switch m.what {
	case connectorNone:
		m.status = uint32(word(0))
	case connectorFork:
		m.parent, m.pid, m.tgid = word(1), word(2), word(3)
	case connectorExec:
		m.pid, m.tgid = word(0), word(1)
	case connectorExit:
		m.pid, m.tgid, m.status = word(0), word(1), uint32(word(2))
	}
	return m, nil
}

// event makes an Event; false for threads and what is not followed. The exit
// of a first thread is told although others may live on: that is looked at by
// the pidfd.
func (m connectorMessage) event() (Event, bool) {
	e := Event{PID: int(m.tgid), Parent: int(m.parent), Time: m.time}
	switch m.what {
	case connectorFork:
		e.Kind = Fork
	case connectorExec:
		e.Kind = Exec
	case connectorExit:
		e.Kind, e.Status, e.HasStatus = Exit, int32(m.status), true
	default:
		return Event{}, false
	}
	return e, m.pid == m.tgid || e.Kind == Exec
}
