// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
)

// struct attune_attach and attune_attach_slot of dmlib_abi.h.
const (
	abiMagic   = 0x0031424c4d445441
	abiVersion = 1

	requestVersion = 8
	requestSlots   = 12
	requestSocket  = 16
	socketBytes    = 108
	requestBytes   = 128

	slotAddress = 0
	slotHook    = 8
	slotRELRO   = 16
	slotError   = 20
	slotOld     = 24
	slotBytes   = 32
)

// request encodes what attune_dm_attach is asked for.
func (p *plan) request() []byte {
	order := binary.LittleEndian
	b := make([]byte, requestBytes+slotBytes*len(p.slots))
	order.PutUint64(b, abiMagic)
	order.PutUint32(b[requestVersion:], abiVersion)
	order.PutUint32(b[requestSlots:], uint32(len(p.slots)))
	copy(b[requestSocket:requestSocket+socketBytes-1], p.options.Socket)
	for i, slot := range p.slots {
		at := b[requestBytes+slotBytes*i:]
		order.PutUint64(at[slotAddress:], slot.Address)
		order.PutUint64(at[slotHook:], slot.Hook)
		if slot.RELRO {
			order.PutUint32(at[slotRELRO:], 1)
		}
	}
	return b
}

// answer returns the slots that were written, from the request as it came back.
// base is where DMLib is loaded.
func (p *plan) answer(b []byte, base uint64) []Slot {
	var led []Slot
	for i, slot := range p.slots {
		at := b[requestBytes+slotBytes*i:]
		if binary.LittleEndian.Uint32(at[slotError:]) != 0 {
			continue
		}
		slot.Old = binary.LittleEndian.Uint64(at[slotOld:])
		slot.Hook += base
		led = append(led, slot)
	}
	return led
}
