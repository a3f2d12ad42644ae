// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// small is how long a file may be whatever it takes of the disk, holes how many times
	// longer than that a greater one: to name a length of years of reading costs nothing.
	small, holes = 1 << 30, 16
	diskBlock    = 512
)

// Checksum is the SHA-256 of a file, in hex. It fails for a file that is made of holes, and ends with ctx.
func Checksum(ctx context.Context, file *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return "", err
	}
	if st.Size > small && st.Size/holes > st.Blocks*diskBlock {
		return "", fmt.Errorf("%d bytes, of which %d were written: not read", st.Size, st.Blocks*diskBlock)
	}
	sum := sha256.New()
	block := make([]byte, 1<<20)
	for at := int64(0); at < st.Size; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := file.ReadAt(block[:min(int64(len(block)), st.Size-at)], at)
		sum.Write(block[:n])
		if at += int64(n); err == io.EOF {
			break // it was cut
		} else if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
