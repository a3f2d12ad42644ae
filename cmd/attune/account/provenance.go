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

// openCrate makes the directory of a crate, which stays the one that is written to, whatever has its
// name later; nil if none is named. Errors have the code for usage.
func openCrate(dir string) (root *os.Root, err error) {
	if dir == "" {
		return nil, nil
	}
	remedy := "name a directory that you may write to"
	if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the kernel has the names of the files in it
	}
	if err == nil {
		root, err = os.OpenRoot(dir)
	}
	for _, name := range []string{crate.MetadataFile, recordFile} {
		if err != nil {
			break
		}
		if _, missing := root.Lstat(name); missing == nil {
			err, remedy = errors.Join(fmt.Errorf("%s: %w", filepath.Join(dir, name), fs.ErrExist), root.Close()), "remove it, or name another directory"
		}
	}
	if err != nil {
		return nil, exitcode.UsageError(fmt.Errorf("--crate: %w", err), remedy)
	}
	return root, nil
}

// writeCrate writes the account into a crate's directory, and the description of the crate.
func writeCrate(root *os.Root, a *account.Account) error {
	description, err := crate.Metadata(crate.Options{Root: root.Name(), Record: recordFile}, crate.Run{Account: a})
	if err != nil {
		return err
	}
	record, err := encode(a)
	return errors.Join(err, writeNew(root, recordFile, record), writeNew(root, crate.MetadataFile, description))
}

// writeNew writes a file that was not there.
func writeNew(root *os.Root, name string, text []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
