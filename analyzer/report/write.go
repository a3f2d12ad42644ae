// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteJSON writes the report to a file. A regular file, or one that does not
// exist yet, is replaced as a whole or not at all; a device or pipe is written
// to as it is. It is safe to call again while the session goes on.
func (r *Report) WriteJSON(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := replaceFile(path, append(data, '\n')); err != nil {
		return fmt.Errorf("write report %s: %w; give a path in a writable directory with --report", path, err)
	}
	return nil
}

// replaceFile puts data in place of the file at path.
func replaceFile(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a directory")
	case err == nil && !info.Mode().IsRegular():
		return writeTo(path, os.O_WRONLY, data)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.tmp", filepath.Base(path), os.Getpid()))
	if err := writeTo(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, data); err != nil {
		return errors.Join(err, removeQuietly(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, removeQuietly(temp))
	}
	return nil
}

// writeTo opens a file, writes data and closes it. The mode is left to the
// umask, since a report is for its owner's group as any output file is.
func writeTo(path string, flag int, data []byte) error {
	f, err := os.OpenFile(path, flag, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// removeQuietly removes a file that may not exist.
func removeQuietly(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
