// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrUnpatchable wraps every reason why a function cannot be patched.
var ErrUnpatchable = errors.New("code cannot be patched")

const (
	// JumpBytes is the length of a jump with a 32-bit displacement.
	JumpBytes = 5
	// JumpOpcode is the byte that a patch writes.
	JumpOpcode = 0xe9
)

// errTooFar is a reason to try another place.
var errTooFar = errors.New("more than 2 GiB away")

// Jump makes the JumpBytes bytes of a jump.
func Jump(at, target uint64) ([]byte, error) { return relative(at, []byte{JumpOpcode}, target) }

// JumpTarget is where the jump in code leads that lies at an address. It is
// false where there is no jump.
func JumpTarget(at uint64, code []byte) (target uint64, ok bool) {
	if len(code) < JumpBytes || code[0] != JumpOpcode {
		return 0, false
	}
	displacement := int64(int32(binary.LittleEndian.Uint32(code[1:])))
	return at + JumpBytes + uint64(displacement), true
}

// relative makes an instruction that ends with the distance to target.
func relative(at uint64, opcode []byte, target uint64) ([]byte, error) {
	displacement, err := distance(at+uint64(len(opcode))+4, target)
	return binary.LittleEndian.AppendUint32(opcode, displacement), err
}

func distance(from, to uint64) (uint32, error) {
	d := int64(to - from)
	if d < math.MinInt32 || d > math.MaxInt32 {
		return 0, fmt.Errorf("%w: %#x from %#x: %w", ErrUnpatchable, to, from, errTooFar)
	}
	return uint32(int32(d)), nil
}
