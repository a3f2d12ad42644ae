// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Writer writes a recording. After an error, it writes nothing more.
type Writer struct {
	stream  *zstd.Encoder
	scratch []byte
	err     error
}

// NewWriter begins a recording on w, which stays the caller's to close. The
// first frame must be a header.
func NewWriter(w io.Writer) (*Writer, error) {
	if _, err := w.Write(binary.LittleEndian.AppendUint32([]byte(magic), Version)); err != nil {
		return nil, fmt.Errorf("write the recording: %w", err)
	}
	stream, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("write the recording: %w", err)
	}
	return &Writer{stream: stream}, nil
}

// Encode returns a frame as WriteEncoded takes it. An empty one is not taken: the
// bytes of it, with those of its checksum, are zeros, which a damaged file may have
// any number of.
func Encode(f *attunev1.RecordingFrame) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
	if err == nil && (len(data) == 0 || len(data) > maxFrame) {
		err = fmt.Errorf("a frame of %d bytes, 1 to %d are allowed", len(data), maxFrame)
	}
	return data, err
}

// Write writes one frame.
func (w *Writer) Write(f *attunev1.RecordingFrame) error {
	data, err := Encode(f)
	if err != nil {
		return err
	}
	return w.WriteEncoded(data)
}

// WriteEncoded writes one frame that Encode has returned.
func (w *Writer) WriteEncoded(frame []byte) error {
	if w.err != nil {
		return w.err
	}
	w.scratch = binary.AppendUvarint(w.scratch[:0], uint64(len(frame)))
	w.scratch = binary.LittleEndian.AppendUint32(w.scratch, checksum(frame))
	if _, err := w.stream.Write(w.scratch); err != nil {
		return w.failed(err)
	}
	if _, err := w.stream.Write(frame); err != nil {
		return w.failed(err)
	}
	return nil
}

// Flush hands what was written so far to the underlying writer, so that it can
// be read whatever becomes of this process. It costs some compression.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.stream.Flush(); err != nil {
		return w.failed(err)
	}
	return nil
}

// Close ends the stream; the caller has written the end frame. It frees what the
// compressor holds also after an error, which it returns again.
func (w *Writer) Close() error {
	err := w.stream.Close()
	if w.err != nil {
		return w.err
	}
	if err != nil {
		return w.failed(err)
	}
	w.err = errors.New("the recording is closed")
	return nil
}

func (w *Writer) failed(err error) error {
	w.err = fmt.Errorf("write the recording: %w", err)
	return w.err
}
