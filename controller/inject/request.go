// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"math"
)

// struct attune_attach, attune_attach_slot and attune_attach_real of
// dmlib_attach.h.
const (
	abiMagic      = 0x0031424c4d445441
	attachVersion = 3
	takeOver      = 1

	requestVersion    = 8
	requestFlags      = 12
	requestSlots      = 16
	requestReals      = 20
	requestMemorySize = 24
	requestMemory     = 32
	requestSocket     = 36
	socketBytes       = 108
	requestBytes      = 144

	slotAddress = 0
	slotHook    = 8
	slotRELRO   = 16
	slotError   = 20
	slotOld     = 24
	slotOrigin  = 32
	slotInitial = 56
	slotBytes   = 64

	originPrint      = 0
	originRelocation = 8
	originSymbol     = 16
	originNameAt     = 20

	realAddress = 24
	realBytes   = 32
)

// request encodes what attune_dm_attach is asked for; which descriptor the
// memory file has is known in the process only.
func (p *plan) request() []byte {
	order := binary.LittleEndian
	b := make([]byte, requestBytes+slotBytes*len(p.slots)+realBytes*len(p.reals))
	order.PutUint64(b, abiMagic)
	order.PutUint32(b[requestVersion:], attachVersion)
	if p.orphan {
		order.PutUint32(b[requestFlags:], takeOver)
	}
	order.PutUint32(b[requestSlots:], uint32(len(p.slots)))
	order.PutUint32(b[requestReals:], uint32(len(p.reals)))
	order.PutUint64(b[requestMemorySize:], uint64(p.options.Geometry.Bytes()))
	copy(b[requestSocket:requestSocket+socketBytes-1], p.options.Socket)
	for i, slot := range p.slots {
		at := b[requestBytes+slotBytes*i:]
		order.PutUint64(at[slotAddress:], slot.Address)
		order.PutUint64(at[slotHook:], slot.Hook)
		if slot.RELRO {
			order.PutUint32(at[slotRELRO:], 1)
		}
		slot.putOrigin(at[slotOrigin:])
		initial := slot.origin.Initial
		if slot.bias == 0 {
			initial = math.MaxUint64 // the program itself
		}
		order.PutUint64(at[slotInitial:], initial)
	}
	for i, r := range p.reals {
		at := b[requestBytes+slotBytes*len(p.slots)+realBytes*i:]
		copy(at[:realAddress-1], r.name)
		order.PutUint64(at[realAddress:], r.address)
	}
	return b
}

// putOrigin encodes struct attune_origin.
func (s Slot) putOrigin(b []byte) {
	order := binary.LittleEndian
	order.PutUint64(b[originPrint:], s.origin.Print)
	order.PutUint64(b[originRelocation:], s.bias+s.origin.Relocation)
	order.PutUint32(b[originSymbol:], uint32(s.origin.Symbol))
	order.PutUint32(b[originNameAt:], uint32(s.origin.Name))
}

// slotsOf returns the slots that were written, from the request as it came back.
// base is where DMLib is loaded.
func (p *plan) slotsOf(b []byte, base uint64) []Slot {
	var led []Slot
	for i, slot := range p.slots {
		at := b[requestBytes+slotBytes*i:]
		if binary.LittleEndian.Uint32(at[slotError:]) != 0 {
			continue
		}
		slot.Old = binary.LittleEndian.Uint64(at[slotOld:])
		slot.Hook += base
		if slot.Old == slot.Hook { // left behind by an earlier controller
			if slot.real == 0 {
				continue // nobody knows what it held: it goes on through the hook
			}
			slot.Old = slot.real
		}
		led = append(led, slot)
	}
	return led
}
