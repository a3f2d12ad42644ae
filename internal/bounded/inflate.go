// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// ErrCorrupt says that compressed data contradicts itself or is cut off.
var ErrCorrupt = errors.New("corrupt compressed data")

// densest is how many bytes one byte of deflate can stand for at most (RFC 1951: a
// match of 258 bytes takes two bits).
const densest = 1032

// Inflate decompresses zlib data that is said to become size bytes. Nothing is
// allocated for a size beyond limit, nor for one that so few bytes cannot become.
// [ErrLimit], [ErrCorrupt].
func Inflate(what string, packed []byte, size, limit uint64) ([]byte, error) {
	if size > limit {
		return nil, exceeds(what, size, limit)
	}
	if size > densest*uint64(len(packed)) {
		return nil, fmt.Errorf("%w: %s: %d bytes cannot become %d", ErrCorrupt, what, len(packed), size)
	}
	stream, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	defer func() { _ = stream.Close() }() // it has no more to say
	data := make([]byte, size)
	if _, err := io.ReadFull(stream, data); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	return data, nil
}

// maxWindow is what a Zstandard stream may refer back to, which its decoder keeps;
// zstd -19 uses an eighth of it.
const maxWindow = 64 << 20

// Zstd returns a decoder that allocates for a window of at most 64 MiB, whatever the
// stream asks for. The caller bounds what is read of it, and closes it.
func Zstd(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}
