// SPDX-License-Identifier: Apache-2.0

package packfile

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Part is one part of a packed file.
type Part struct {
	// Kind says what it is.
	Kind Kind
	// Name is that of a file, without folder.
	Name string
	// Mode has permission bits only.
	Mode fs.FileMode
	// Size is that of the content, bytes.
	Size int64
	// Offset and StoredSize say where it is in the file, bytes.
	Offset, StoredSize int64
	// Compressed: it is stored as a Zstandard frame.
	Compressed bool

	hash uint64
}

// File is a packed file whose record and table are sound.
type File struct {
	// Flags say how the program is started.
	Flags Flags
	// Attune is the version of attune that packed it.
	Attune string
	// Machine is the processor that it is for.
	Machine elf.Machine
	// Parts are in the order of the file.
	Parts []Part

	reader  io.ReaderAt
	size    int64 // without the record
	content uint64
}

// Read reads record and table of a file of that size, bytes. The error wraps
// ErrNotPacked or ErrDamaged where it is not one of reading. The reader stays
// the caller's, and is used by the File's methods.
func Read(r io.ReaderAt, size int64) (*File, error) {
	if size < recordSize {
		return nil, ErrNotPacked
	}
	b := make([]byte, recordSize)
	if _, err := r.ReadAt(b, size-recordSize); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	rec, err := decodeRecord(b, size)
	if err != nil {
		return nil, err
	}
	table, err := bounded.Bytes("table of parts", uint64(rec.PartCount)*partSize, maxParts*partSize)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if _, err := r.ReadAt(table, int64(rec.TableOffset)); err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	if xxhash.Sum64(table) != rec.TableHash {
		return nil, fmt.Errorf("%w: its table does not fit its checksum", ErrDamaged)
	}
	parts, err := decodeTable(table, uint64(size)-recordSize)
	if err != nil {
		return nil, err
	}
	attune, _, _ := bytes.Cut(rec.Attune[:], []byte{0})
	return &File{
		Flags: rec.Flags, Attune: string(attune), Machine: elf.Machine(rec.Machine), Parts: parts,
		reader: r, size: size - recordSize, content: rec.ContentHash,
	}, nil
}

// Verify reads every byte; the error wraps ErrDamaged if one is not as it was
// packed.
func (f *File) Verify() error {
	hash := xxhash.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f.reader, 0, f.size)); err != nil {
		return err
	}
	if hash.Sum64() != f.content {
		return fmt.Errorf("%w: it does not fit its checksum", ErrDamaged)
	}
	return nil
}

// Find returns the first part of a kind.
func (f *File) Find(kind Kind) (Part, bool) {
	for _, p := range f.Parts {
		if p.Kind == kind {
			return p, true
		}
	}
	return Part{}, false
}

// Extract writes the content of a part. The error wraps ErrDamaged if it is not
// what was packed; part of it was written then.
func (f *File) Extract(w io.Writer, p Part) error {
	content := io.Reader(io.NewSectionReader(f.reader, p.Offset, p.StoredSize))
	if p.Compressed {
		z, err := bounded.Zstd(content)
		if err != nil {
			return err
		}
		defer z.Close()
		content = z
	}
	out := &counter{to: w, hash: xxhash.New()}
	// One byte more than there should be shows that there is more.
	if _, err := io.Copy(out, io.LimitReader(content, p.Size+1)); err != nil {
		if isDamage(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return fmt.Errorf("unpack %s: %w", p.Name, err)
	}
	if out.size != uint64(p.Size) || out.hash.Sum64() != p.hash {
		return fmt.Errorf("unpack %s: %w: it does not fit its checksum", p.Name, ErrDamaged)
	}
	return nil
}

// isDamage tells whether an error is the decoder's, not one of reading or
// writing.
func isDamage(err error) bool {
	return slices.ContainsFunc([]error{
		zstd.ErrMagicMismatch, zstd.ErrCRCMismatch, zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig,
		zstd.ErrBlockTooSmall, zstd.ErrUnexpectedBlockSize, zstd.ErrWindowSizeExceeded, zstd.ErrDecoderSizeExceeded,
		io.ErrUnexpectedEOF,
	}, func(known error) bool { return errors.Is(err, known) })
}
