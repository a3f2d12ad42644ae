// SPDX-License-Identifier: Apache-2.0

package callframe

import (
	"encoding/binary"
	"errors"
	"slices"
)

// cursor reads what is left of a piece, which lies at an address. After an error all
// is zero.
type cursor struct {
	left []byte
	at   uint64
	err  error
}

func (c *cursor) fail(err error) {
	c.err = errors.Join(c.err, err)
	c.left = nil
}

// take takes bytes; zeros behind the end.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.left)) {
		c.fail(ErrCorrupt)
		return make([]byte, 8)
	}
	taken := c.left[:n]
	c.left, c.at = c.left[n:], c.at+n
	return taken
}

func (c *cursor) byte() byte  { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

// uleb and sleb are numbers of variable length, without and with sign (DWARF 5, 7.6).
func (c *cursor) uleb() (value uint64) {
	value, _ = c.leb()
	return value
}

func (c *cursor) sleb() int64 {
	value, bits := c.leb()
	if bits < 64 && value>>(bits-1)&1 != 0 {
		value |= ^uint64(0) << bits
	}
	return int64(value)
}

// leb returns a number, and how many of its bits are given.
func (c *cursor) leb() (value uint64, bits int) {
	for c.err == nil && bits < 64 {
		b := c.byte()
		value |= uint64(b&0x7f) << bits
		bits += 7
		if b&0x80 == 0 {
			break
		}
	}
	return value, max(bits, 1)
}

func (c *cursor) text() string {
	n := slices.Index(c.left, 0)
	if n < 0 {
		c.fail(ErrCorrupt)
		return ""
	}
	return string(c.take(uint64(n) + 1)[:n])
}

// Encodings of pointers (LSB 5.0, 10.5.1).
const (
	encodingFormat  = 0x0f
	encodingWord    = 0x00
	encodingUnsign4 = 0x03
	encodingUnsign8 = 0x04
	encodingSigned4 = 0x0b
	encodingSigned8 = 0x0c
	encodingRelPC   = 0x10
)

// pointer reads an address.
func (c *cursor) pointer(encoding byte) (value uint64) {
	from := c.at
	switch encoding & encodingFormat {
	case encodingWord, encodingUnsign8, encodingSigned8:
		value = c.u64()
	case encodingUnsign4:
		value = uint64(c.u32())
	case encodingSigned4:
		value = uint64(int64(int32(c.u32())))
	default:
		c.fail(ErrUnsupported)
	}
	if encoding&encodingRelPC != 0 {
		value += from
	}
	return value
}
