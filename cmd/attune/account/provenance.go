// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/account/crate"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/provenance"
	"github.com/attune-hpc/attune/proto/attune/number"
)

// recorded are the flags of provenance.
type recorded struct {
	on              bool
	inputs, outputs []string
	capture         string
	crate           string
}

// wanted says whether any of them is given.
func (f *recorded) wanted() bool {
	return f.on || f.crate != "" || f.capture != "" || len(f.inputs)+len(f.outputs) > 0
}

// begin looks at what the command finds; nil if nothing is to be recorded. Errors have the code
// for usage.
func (f *recorded) begin(p *cli.Env) (*provenance.Record, error) {
	if !f.wanted() {
		return nil, nil
	}
	options := provenance.Options{Inputs: f.inputs, Outputs: f.outputs, Environment: cli.Environment(), State: p.State}
	if f.capture != "" {
		most, err := number.ParseBytes(f.capture)
		if err != nil || most < 1 || most > maxCapture {
			return nil, exitcode.UsageError(fmt.Errorf("--capture: %q is no size from 1 to %d bytes", f.capture, maxCapture), "64KB is one")
		}
		options.Capture = int64(most)
	}
	for _, path := range f.inputs {
		if _, err := os.Stat(path); err != nil {
			return nil, exitcode.UsageError(fmt.Errorf("--input: %w", err), "name files that are there before the command runs")
		}
	}
	return provenance.Begin(options), nil
}

// maxCapture bounds what is kept of a stream, bytes: it becomes part of a document.
const maxCapture = 64 << 20

// recordFile is the account's name in a crate.
const recordFile = "account.json"

// checkCrate makes the directory of a crate. Errors have the code for usage.
func checkCrate(dir string) (root string, err error) {
	if dir == "" {
		return "", nil
	}
	remedy := "name a directory that you may write to"
	if root, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(root, 0o777)
	}
	for _, name := range []string{crate.MetadataFile, recordFile} {
		if err == nil {
			if _, missing := os.Lstat(filepath.Join(root, name)); missing == nil {
				err, remedy = fmt.Errorf("%s: %w", filepath.Join(root, name), fs.ErrExist), "remove it, or name another directory"
			}
		}
	}
	if err != nil {
		return "", exitcode.UsageError(fmt.Errorf("--crate: %w", err), remedy)
	}
	return root, nil
}

// writeCrate writes the account into a crate's directory, and the description of the crate.
func writeCrate(root string, a *account.Account) error {
	description, err := crate.Metadata(crate.Options{Root: root, Record: recordFile}, a)
	if err != nil {
		return err
	}
	record, err := encode(a)
	return errors.Join(err, writeNew(filepath.Join(root, recordFile), record), writeNew(filepath.Join(root, crate.MetadataFile), description))
}

// writeNew writes a file that was not there.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
