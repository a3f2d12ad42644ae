// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// A program begins with a block for each point that is measured, or with one
// if there is none:
//
//	 0  call *hook     (ff 15): returns with everything as it was
//	 6  what follows, if it fits, or a jump to it
//	32  number         uint16; the hook finds it by its return address
//	34  blocks behind  uint16; of points that the same call measures: the code is
//	                   in the first block only
//	36  size of the program in slots, uint8
//	37  number of the spare slot in the window, uint8
//	38  length of the description, uint16
//	40  address of the patched instruction
//	48  hook           address of DMLib's function
//	56  magic
//
// A block before all others holds a branch where the displaced instruction is
// a conditional jump that may leave the function. Behind the blocks follow the
// actions, the displaced instruction, a jump back, and the constants. The
// description of all that ends the last slot: what comes later, such as the
// controller of a forked child, can tell from it what is done here and why.
const (
	blockBytes       = 64
	blockNext        = 6  // ATTUNE_ISLAND_CALL
	blockNumber      = 32 // ATTUNE_ISLAND_NUMBER
	blockSlots       = 36
	blockSpare       = 37
	blockDescription = 38
	blockAddress     = 40
	blockHook        = 48
	blockMagic       = 56
)

// NoNumber makes of a number, as its second byte, one under which DMLib measures nothing.
const NoNumber = 0xff

// HeadBytes is how much of a program [SizeOf] needs.
const HeadBytes = blockBytes

var magic = []byte("ATISLND2")

var errTooLong = fmt.Errorf("%w: %w", ErrAction, errors.New("too many actions on one function"))

// complete fills in the blocks and adds the description.
func (p Program) complete(code []byte, blocks int, s Site, e Environment) ([]byte, error) {
	description := p.Key()
	size := (len(code) + len(description) + SlotBytes - 1) &^ (SlotBytes - 1)
	if size > MaxProgramBytes {
		return nil, errTooLong
	}
	code = append(code, bytes.Repeat([]byte{0xcc}, size-len(code)-len(description))...)
	code = append(code, description...)
	for i := range blocks {
		block := code[i*blockBytes:][:blockBytes]
		block[blockSlots] = byte(size / SlotBytes)
		block[blockSpare] = byte(e.Spare / SlotBytes)
		binary.LittleEndian.PutUint16(block[blockDescription:], uint16(len(description)))
		binary.LittleEndian.PutUint64(block[blockAddress:], s.Address)
		binary.LittleEndian.PutUint64(block[blockHook:], e.Hook)
		copy(block[blockMagic:], magic)
	}
	measuring := code[(blocks-max(len(p.Numbers), 1))*blockBytes:]
	for i, number := range p.Numbers {
		field := measuring[i*blockBytes+blockNumber:]
		binary.LittleEndian.PutUint16(field, uint16(number))
		binary.LittleEndian.PutUint16(field[2:], uint16(len(p.Numbers)-1-i))
	}
	return code, nil
}

// SizeOf is the size of a program that begins with head, lies at an address and
// was made for the site, and its spare slot. It is false for anything else.
func (s Site) SizeOf(at uint64, head []byte) (size int, spare uint64, ok bool) {
	if !isBlock(head) ||
		binary.LittleEndian.Uint64(head[blockAddress:]) != s.Address {
		return 0, 0, false
	}
	spare = at&^(WindowBytes-1) + uint64(head[blockSpare])*SlotBytes
	return int(head[blockSlots]) * SlotBytes, spare, true
}

// NumbersOfOthers finds, in the content of a window, the second bytes of the numbers of
// programs that measure under numbers of another giver. Each becomes [NoNumber] in one
// go, while threads run through it. The process could have written the content: it is
// untrusted.
func NumbersOfOthers(window []byte, giver string) (at []int) {
	for start, end := 0, 0; start < len(window); start = end {
		end = min(start+SlotBytes, len(window))
		if !isBlock(window[start:]) {
			continue
		}
		end = min(start+max(1, int(window[start+blockSlots]))*SlotBytes, len(window))
		p, err := ProgramOf(window[start:end])
		if err == nil && (len(p.Numbers) == 0 || p.Giver == giver) {
			continue
		}
		for block := start; isBlock(window[block:end]); block += blockBytes {
			if number := block + blockNumber + 1; window[number] != NoNumber {
				at = append(at, number)
			}
		}
	}
	return at
}

func isBlock(code []byte) bool {
	return len(code) >= blockBytes && bytes.Equal(code[blockMagic:blockBytes], magic)
}

// ProgramOf reads back the description of a whole program. The process could
// have written it: it is untrusted.
func ProgramOf(code []byte) (p Program, err error) {
	if len(code) < HeadBytes {
		return Program{}, errors.New("no program")
	}
	length := int(binary.LittleEndian.Uint16(code[blockDescription:]))
	if length > len(code)-HeadBytes {
		return Program{}, errors.New("no description of the program")
	}
	if err := json.Unmarshal(code[len(code)-length:], &p); err != nil {
		return Program{}, fmt.Errorf("description of the program: %w", err)
	}
	for _, step := range p.Steps {
		if err := step.Check(); err != nil {
			return Program{}, err
		}
	}
	return p, nil
}
