// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// maxDictionary is what the decoder may allocate for a dictionary; xz -9 uses all of it.
const maxDictionary = 64 << 20

// Unxz decompresses an .xz stream. How much it becomes, and how large a dictionary
// each of its blocks asks for, is known before a byte is decoded: LZMA2 says the size
// of each chunk. [ErrLimit] for more than limit bytes or a dictionary of more than
// 64 MiB, [ErrCorrupt], also for filters other than LZMA2, which only code has.
func Unxz(what string, packed []byte, limit uint64) ([]byte, error) {
	size, err := xzSize(what, packed, limit)
	if err != nil {
		return nil, err
	}
	stream, err := xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(stream, data); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	// The check of the last block and the index come behind the last byte.
	if n, err := stream.Read(make([]byte, 1)); n != 0 || err != io.EOF { //nolint:errorlint // io.Reader says EOF unwrapped
		return nil, fmt.Errorf("%w: %s: no end behind %d bytes: %w", ErrCorrupt, what, size, err)
	}
	return data, nil
}

// Sizes of the format (The .xz File Format, 1.2.0: 2.1.1, 3.1).
const (
	xzHeader = 12
	xzIndex  = 0 // where a block would say the size of its header
)

// xzSize walks over the blocks of the stream without decoding them.
func xzSize(what string, packed []byte, limit uint64) (size uint64, err error) {
	at := xzBytes{what, packed}
	header := at.take(xzHeader)
	if header == nil || !bytes.HasPrefix(header, []byte("\xfd7zXZ\x00")) {
		return 0, at.corrupt("no .xz stream")
	}
	check := 0
	if id := int(header[7] & 0xf); id > 0 {
		check = 4 << ((id - 1) / 3) // bytes behind each block: 4, 8, 16, 32 or 64
	}
	for {
		switch first := at.take(1); {
		case first == nil:
			return 0, at.corrupt("cut off before a block")
		case first[0] == xzIndex:
			return size, nil
		default:
			if err := at.blockHeader(int(first[0])*4 + 3); err != nil {
				return 0, err
			}
		}
		start := len(at.left)
		if size, err = at.chunks(size, limit); err != nil {
			return 0, err
		}
		used := start - len(at.left)
		if at.take((4-used%4)%4+check) == nil {
			return 0, at.corrupt("cut off behind a block")
		}
	}
}

// xzBytes is what is left of a stream.
type xzBytes struct {
	what string
	left []byte
}

func (x *xzBytes) corrupt(how string) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, x.what, how)
}

// take takes bytes; nil if there are not so many.
func (x *xzBytes) take(n int) []byte {
	if n > len(x.left) {
		return nil
	}
	taken := x.left[:n:n]
	x.left = x.left[n:]
	return taken
}

// blockHeader reads the header of a block, whose first byte is read: flags, perhaps two
// sizes, and the filters, of which the last one is LZMA2 with its dictionary.
func (x *xzBytes) blockHeader(size int) error {
	const filters, packedSize, plainSize = 0x03, 0x40, 0x80
	header := x.take(size)
	if header == nil {
		return x.corrupt("cut off in the header of a block")
	}
	flags, rest := header[0], header[1:]
	if flags&filters != 0 {
		return x.corrupt("filters other than LZMA2")
	}
	for _, present := range []byte{packedSize, plainSize} {
		if flags&present == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return x.corrupt("the header of a block makes no sense")
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 {
		return x.corrupt("filters other than LZMA2")
	}
	dictionary, err := lzma.DecodeDictCap(rest[2])
	if err != nil {
		return x.corrupt("the header of a block makes no sense")
	}
	if dictionary > maxDictionary {
		return fmt.Errorf("%w: %s asks for a dictionary of %d bytes, more than %d", ErrLimit, x.what, dictionary, maxDictionary)
	}
	return nil
}

// chunks walks over the LZMA2 chunks of a block and adds up what they become.
func (x *xzBytes) chunks(size, limit uint64) (uint64, error) {
	for {
		control := x.take(1)
		if len(control) > 0 && control[0] == 0 {
			return size, nil
		}
		plain, packed, ok := x.chunk(control)
		if !ok || x.take(packed) == nil {
			return 0, x.corrupt("cut off in a block")
		}
		if size += uint64(plain); size > limit {
			return 0, fmt.Errorf("%w: %s becomes more than %d bytes", ErrLimit, x.what, limit)
		}
	}
}

// chunk reads the header of a chunk: how many bytes it becomes, and how many follow.
func (x *xzBytes) chunk(control []byte) (plain, packed int, ok bool) {
	const compressed, properties = 0x80, 0xc0
	if control == nil {
		return 0, 0, false
	}
	kind := control[0]
	if kind < compressed {
		b := x.take(2)
		if b == nil || kind > 2 {
			return 0, 0, false
		}
		size := int(binary.BigEndian.Uint16(b)) + 1
		return size, size, true
	}
	b := x.take(4)
	if b == nil {
		return 0, 0, false
	}
	plain = int(kind&0x1f)<<16 + int(binary.BigEndian.Uint16(b)) + 1
	packed = int(binary.BigEndian.Uint16(b[2:])) + 1
	if kind >= properties {
		packed++
	}
	return plain, packed, true
}
