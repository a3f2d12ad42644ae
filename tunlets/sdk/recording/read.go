// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Reader reads a recording.
type Reader struct {
	header *attunev1.RecordingHeader
	file   *source
	stream *zstd.Decoder
	in     *bufio.Reader
	frames int           // that were read
	at     time.Duration // of the last one
	end    *attunev1.RecordingEnd
	err    error
}

// NewReader begins to read a recording from r, which stays the caller's to
// close. It fails with ErrFormat, ErrVersion, ErrTruncated or ErrDamaged, or
// with what r fails with.
func NewReader(r io.Reader) (*Reader, error) {
	if err := readPreamble(r); err != nil {
		return nil, err
	}
	file := &source{r: r}
	stream, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowBytes))
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	out := &Reader{file: file, stream: stream, in: bufio.NewReader(stream)}
	first, err := out.frame()
	if err == nil && first.GetHeader() == nil {
		err = damaged("it does not begin with a header")
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	out.header = first.GetHeader()
	return out, nil
}

// readPreamble reads what says that it is a recording.
func readPreamble(r io.Reader) error {
	preamble := make([]byte, len(magic)+versionBytes)
	n, err := io.ReadFull(r, preamble)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read the recording: %w", err)
	case n == 0:
		return fmt.Errorf("%w: the file is empty", ErrTruncated)
	case !bytes.HasPrefix([]byte(magic), preamble[:min(n, len(magic))]):
		return ErrFormat
	case err != nil:
		return fmt.Errorf("%w: it has %d bytes", ErrTruncated, n)
	}
	if v := binary.LittleEndian.Uint32(preamble[len(magic):]); v != Version {
		return fmt.Errorf("%w: it has format %d, this attune reads %d", ErrVersion, v, Version)
	}
	return nil
}

// Header says what was recorded; it is not to be modified.
func (r *Reader) Header() *attunev1.RecordingHeader { return r.header }

// Start returns when the session started.
func (r *Reader) Start() time.Time { return time.Unix(0, r.header.GetStartUnixNano()) }

// End returns what the end says, once Next has returned io.EOF.
func (r *Reader) End() *attunev1.RecordingEnd { return r.end }

// Next returns the next frame, without header and end; io.EOF after the last
// one. Any other error wraps ErrTruncated or ErrDamaged and says how far the
// recording goes, or is that of the file. After an error it returns the same
// again.
func (r *Reader) Next() (*attunev1.RecordingFrame, error) {
	if r.err != nil {
		return nil, r.err
	}
	f, err := r.frame()
	switch {
	case err != nil:
	case f.GetEnd() != nil:
		r.end = f.GetEnd()
		err = r.nothingBehind()
	case f.GetHeader() != nil:
		err = damaged("there is a second header after frame %d", r.frames)
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	return f, nil
}

// Close frees what the reader holds.
func (r *Reader) Close() { r.stream.Close() }

// frame reads one frame.
func (r *Reader) frame() (*attunev1.RecordingFrame, error) {
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, r.broken(err)
	}
	if size == 0 || size > maxFrame {
		return nil, damaged("frame %d is said to have %d bytes", r.frames+1, size)
	}
	var sum [checksumBytes]byte
	if _, err := io.ReadFull(r.in, sum[:]); err != nil {
		return nil, r.broken(err)
	}
	var data bytes.Buffer // grows with what is there, not with what is claimed
	if _, err := io.CopyN(&data, r.in, int64(size)); err != nil {
		return nil, r.broken(err)
	}
	if checksum(data.Bytes()) != binary.LittleEndian.Uint32(sum[:]) {
		return nil, damaged("the checksum of frame %d does not fit", r.frames+1)
	}
	return r.decode(data.Bytes())
}

func (r *Reader) decode(data []byte) (*attunev1.RecordingFrame, error) {
	f := &attunev1.RecordingFrame{}
	if err := proto.Unmarshal(data, f); err != nil {
		return nil, damaged("frame %d: %w", r.frames+1, err)
	}
	at := time.Duration(f.GetAtNanos())
	if at < r.at {
		return nil, damaged("frame %d is of %v, the one before of %v", r.frames+1, at, r.at)
	}
	r.frames++
	r.at = at
	return f, nil
}

// nothingBehind checks that the stream ends with the end.
func (r *Reader) nothingBehind() error {
	switch _, err := r.in.ReadByte(); {
	case err == nil:
		return damaged("there is something behind its end")
	case !errors.Is(err, io.EOF):
		return r.broken(err)
	}
	return io.EOF
}

// broken says what an error in the middle means.
func (r *Reader) broken(err error) error {
	where := fmt.Sprintf("after frame %d, at %v", r.frames, r.at)
	switch {
	case r.file.err != nil:
		return fmt.Errorf("read the recording %s: %w", where, r.file.err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w %s: it was not closed, or the file is not whole", ErrTruncated, where)
	}
	return damaged("%s: %w", where, err)
}

// source remembers an error of the file: the decompressor tells its own and
// those of what it reads in the same way.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
