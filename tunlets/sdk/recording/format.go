// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// Version of the format. What can be told apart by frames, with the rules of
// protobuf, does not change it.
const Version = 2

// magic begins a file. Its first byte is in no text, its last ones show a
// transfer that took the file for one.
const magic = "\x93attune\n"

const (
	// versionBytes and checksumBytes are the sizes of numbers.
	versionBytes  = 4
	checksumBytes = 4
	// maxFrame bounds a frame. The greatest are records and samples as they came
	// in one message of a channel, which has at most 16 MiB.
	maxFrame = 16 << 20
	// windowBytes is how far the compressor looks back, and with that the memory
	// of writer and reader.
	windowBytes = 256 << 10
)

// The ways in which a file is not a whole recording. Errors wrap one of them.
var (
	// ErrFormat is returned for a file that is no recording at all.
	ErrFormat = errors.New("not a recording of attune")
	// ErrVersion is returned for a recording of another version of the format.
	ErrVersion = errors.New("recording of another version")
	// ErrTruncated is returned where a recording ends without having been closed.
	ErrTruncated = errors.New("the recording is cut off")
	// ErrDamaged is returned where a recording is not what was written.
	ErrDamaged = errors.New("the recording is damaged")
)

// checksum is CRC-32C, which processors compute themselves.
func checksum(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
}

// damaged says what is wrong.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}
