// SPDX-License-Identifier: Apache-2.0

package packfile

import (
	"debug/elf"
	"fmt"
	"io"
	"io/fs"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// Header is what a packed file says of itself.
type Header struct {
	// Glue is the program that it starts with.
	Glue []byte
	// Flags say how the program is started.
	Flags Flags
	// Machine is the processor that the glue is for.
	Machine elf.Machine
	// Attune is the version of attune, for people.
	Attune string
}

// Source is a part to be packed.
type Source struct {
	// Kind says what it is.
	Kind Kind
	// Name is that of a file, without folder.
	Name string
	// Mode has the permission bits that count when it is extracted.
	Mode fs.FileMode
	// Compress: it is compressed.
	Compress bool
	// Content is read once, to its end.
	Content io.Reader
}

// Write writes a packed file, and returns how many bytes the parts of each kind take in it.
// What was written is of no use after an error.
func Write(w io.Writer, header Header, parts []Source) (map[Kind]int64, error) {
	if len(parts) == 0 || len(parts) > maxParts {
		return nil, fmt.Errorf("%d parts: 1 to %d can be packed", len(parts), maxParts)
	}
	out := &counter{to: w, hash: xxhash.New()}
	if _, err := out.Write(header.Glue); err != nil {
		return nil, err
	}
	entries, sizes := make([]entry, len(parts)), make(map[Kind]int64)
	for i, p := range parts {
		var err error
		if entries[i], err = writePart(out, p); err != nil {
			return nil, fmt.Errorf("pack %s: %w", p.Name, err)
		}
		sizes[p.Kind] += int64(entries[i].StoredSize)
	}
	if err := out.align(); err != nil {
		return nil, err
	}
	table := encode(entries)
	r := record{
		Version: version, RecordSize: recordSize, TableOffset: out.size, PartCount: uint32(len(parts)),
		PartSize: partSize, Flags: header.Flags, Machine: uint32(header.Machine), TableHash: xxhash.Sum64(table),
	}
	copy(r.Magic[:], magic)
	copy(r.Attune[:maxVersion], header.Attune)
	if _, err := out.Write(table); err != nil {
		return nil, err
	}
	r.FileSize, r.ContentHash = out.size+recordSize, out.hash.Sum64()
	_, err := w.Write(r.seal())
	return sizes, err
}

func writePart(out *counter, p Source) (entry, error) {
	if err := checkName(p.Name); err != nil {
		return entry{}, err
	}
	if err := out.align(); err != nil {
		return entry{}, err
	}
	e := entry{Kind: p.Kind, Offset: out.size, Mode: uint32(p.Mode.Perm())}
	copy(e.Name[:], p.Name)
	plain := &counter{to: io.Discard, hash: xxhash.New()}
	content := io.TeeReader(p.Content, plain)
	var err error
	if p.Compress {
		e.Encoding = zstandard
		err = compress(out, content)
	} else {
		_, err = io.Copy(out, content)
	}
	e.StoredSize, e.Size, e.Hash = out.size-e.Offset, plain.size, plain.hash.Sum64()
	return e, err
}

// compress writes one Zstandard frame. A better level takes four times as long
// and makes a packed file 3 % smaller.
func compress(w io.Writer, content io.Reader) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, content); err != nil {
		_ = z.Close() // the first error counts
		return err
	}
	return z.Close()
}

// counter counts and hashes what is written.
type counter struct {
	to   io.Writer
	size uint64
	hash *xxhash.Digest
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.size += uint64(n)
	_, _ = c.hash.Write(b[:n]) // cannot fail
	return n, err
}

// align fills up to where a part may begin.
func (c *counter) align() error {
	_, err := c.Write(make([]byte, (alignment-c.size%alignment)%alignment))
	return err
}
