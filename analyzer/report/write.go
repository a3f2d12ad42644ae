// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// EncodeJSON writes the report as one indented JSON document.
func (r *Report) EncodeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// WriteJSON writes the report to a regular file, which is made or replaced as a
// whole or not at all. It is safe to call again while the session goes on.
func (r *Report) WriteJSON(path string) error {
	if err := replace(path, r.EncodeJSON); err != nil {
		return fmt.Errorf("write report %s: %w; give a path in a writable directory with --report", path, err)
	}
	return nil
}

// WritePage is WriteJSON for the page of [Report.EncodeHTML].
func (r *Report) WritePage(path string) error {
	if err := replace(path, r.EncodeHTML); err != nil {
		return fmt.Errorf("write page %s: %w; give a path in a writable directory with --html", path, err)
	}
	return nil
}

// replace writes a file beside the one at path and then puts it in its place.
func replace(path string, encode func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is no regular file") // never replace a device
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.%d.tmp", filepath.Base(path), os.Getpid(), time.Now().UnixNano()))
	if err := create(temp, encode); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

// create writes a new file, or leaves none. Its mode is left to
// the umask, since a report is for its owner's group as any output file is.
func create(path string, encode func(io.Writer) error) error {
	// O_EXCL: in a directory that others write to, the name may be a link.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err := errors.Join(encode(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
