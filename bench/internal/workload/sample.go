// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// SampleFile returns a file of about the given size that compresses like text,
// the same every time, or why there is none.
func (c Catalogue) SampleFile(bytes int) (path, missing string) {
	path = filepath.Join(c.Cache, "sample.txt")
	if err := writeSample(path, bytes); err != nil {
		return "", err.Error()
	}
	return path, ""
}

func writeSample(path string, bytes int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	random := rand.New(rand.NewPCG(1, 2))
	for written := 0; written < bytes; {
		n, _ := fmt.Fprintf(out, "step %d energy %.6f rank %d\n", random.IntN(100000), random.NormFloat64(), random.IntN(64))
		written += n
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}
