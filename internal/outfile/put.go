// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Put puts a file with a content and a mode, whatever the umask, at path: whoever reads it
// sees all of that or what was there before. After a crash of the machine it may be empty:
// Put is for what can be made again, and never waits for a busy disk. A link at path is
// replaced itself.
func Put(path string, content []byte, mode os.FileMode) error {
	return put(path, content, mode, (*os.File).Close)
}

// PutDurably is Put for what must not be lost: if the file is there after a crash of the
// machine, all of it is. It waits for the disk.
func PutDurably(path string, content []byte, mode os.FileMode) error {
	return put(path, content, mode, syncAndClose)
}

// Prepare is PutDurably without its last step: the caller renames the file that it returns,
// which lies beside path, or removes it. So several files can be replaced when all are
// there.
func Prepare(path string, content []byte, mode os.FileMode) (prepared string, err error) {
	return prepare(path, content, mode, syncAndClose)
}

func put(path string, content []byte, mode os.FileMode, end func(*os.File) error) error {
	prepared, err := prepare(path, content, mode, end)
	if err != nil {
		return err
	}
	if err := os.Rename(prepared, path); err != nil {
		return errors.Join(err, os.Remove(prepared))
	}
	return nil
}

// prepare writes a file that is for its owner only until it has its content.
func prepare(path string, content []byte, mode os.FileMode, end func(*os.File) error) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(mode), end(file)); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

func syncAndClose(file *os.File) error { return errors.Join(file.Sync(), file.Close()) }
