// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// request is what attune_dm_attach is asked for; which descriptor the memory file has
// is known in the process only.
type request struct {
	slots    []hookable
	reals    []realFunction
	orphan   bool // the controller that the process is under is dead
	geometry shm.Geometry
	socket   string
}

func (r *request) encode() []byte {
	order := binary.LittleEndian
	b := make([]byte, abi.AttachBytes+abi.AttachSlotBytes*len(r.slots)+abi.AttachRealBytes*len(r.reals))
	order.PutUint64(b, abi.ABIMagic)
	order.PutUint32(b[abi.AttachVersionAt:], abi.AttachVersion)
	if r.orphan {
		order.PutUint32(b[abi.AttachFlagsAt:], abi.AttachTakeOver)
	}
	order.PutUint32(b[abi.AttachSlotCountAt:], uint32(len(r.slots)))
	order.PutUint32(b[abi.AttachRealCountAt:], uint32(len(r.reals)))
	order.PutUint64(b[abi.AttachMemorySizeAt:], uint64(r.geometry.Bytes()))
	copy(b[abi.AttachSocketAt:abi.AttachSocketAt+abi.AttachSocket-1], r.socket)
	for i, slot := range r.slots {
		at := b[abi.AttachBytes+abi.AttachSlotBytes*i:]
		order.PutUint64(at[abi.AttachSlotAddressAt:], slot.Address)
		order.PutUint64(at[abi.AttachSlotHookAt:], slot.To)
		if slot.RELRO {
			order.PutUint32(at[abi.AttachSlotRELROAt:], 1)
		}
		putOrigin(slot.Slot, at[abi.AttachSlotOriginAt:])
		copy(at[abi.AttachSlotNameAt:abi.AttachSlotNameAt+abi.AttachName-1], slot.name)
		order.PutUint64(at[abi.AttachSlotUnboundAt:], slot.unbound)
	}
	for i, behind := range r.reals {
		at := b[abi.AttachBytes+abi.AttachSlotBytes*len(r.slots)+abi.AttachRealBytes*i:]
		copy(at[:abi.AttachName-1], behind.name)
		order.PutUint64(at[abi.AttachName:], behind.address)
	}
	return b
}

// putOrigin encodes struct attune_origin.
func putOrigin(s shm.Slot, b []byte) {
	order := binary.LittleEndian
	order.PutUint64(b[abi.OriginPrintAt:], s.Origin.Print)
	order.PutUint64(b[abi.OriginRelocationAt:], s.Bias+s.Origin.Relocation)
	order.PutUint32(b[abi.OriginSymbolAt:], uint32(s.Origin.Symbol))
	order.PutUint32(b[abi.OriginNameAt:], uint32(s.Origin.Name))
}

// slotsOf returns the slots that were written, from the request as it came back.
// base is where DMLib is loaded.
func (r *request) slotsOf(b []byte, base uint64) []shm.Slot {
	var led []shm.Slot
	for i, slot := range r.slots {
		at := b[abi.AttachBytes+abi.AttachSlotBytes*i:]
		if binary.LittleEndian.Uint32(at[abi.AttachSlotErrorAt:]) != 0 {
			continue
		}
		slot.Old = binary.LittleEndian.Uint64(at[abi.AttachSlotOldAt:])
		slot.To += base
		if slot.Old == slot.To { // left behind by an earlier controller
			if slot.real == 0 {
				continue // nobody knows what it held: it goes on through the hook
			}
			slot.Old = slot.real
		}
		led = append(led, slot.Slot)
	}
	return led
}
