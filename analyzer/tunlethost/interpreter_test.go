// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Words before the program in the line of env are not taken for it.
func TestPresentInterpreter(t *testing.T) {
	for _, words := range []string{"A=b sh", "-i sh", "-u A sh", "-iu A sh", "--unset A sh", `"A=b c" sh`} {
		line := "#!/usr/bin/env -S " + words + "\n"
		path := filepath.Join(t.TempDir(), "script")
		files.Write(t, path, line, 0o755)
		if err := missingInterpreter(path, path); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// A tunlet whose interpreter is missing is no missing tunlet: the error says which one is,
// and what to do. It is not tried again.
func TestMissingInterpreter(t *testing.T) {
	for _, tt := range []struct{ name, program, want string }{
		{"of the first line", "#!/usr/bin/nosuch -u\n", "there is no /usr/bin/nosuch, by which it is run; install that, or name another program in the first line of ORIGIN"},
		{"of env", "#!/usr/bin/env nosuch\n", "there is no nosuch in " + tunletPath + ", by which it is run; install that, or name another program in the first line of ORIGIN"},
		{"of env with arguments", "#!/usr/bin/env -S nosuch -u\n", "there is no nosuch in "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, sdk.ProgramPrefix+"script")
			if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, []byte(tt.program), 0o755)); err != nil {
				t.Fatal(err)
			}
			c := Find([]string{dir}, nil)[0]
			c.CopyOf = "ORIGIN"
			_, _, err := Describe(context.Background(), c, Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, errPermanent) {
				t.Errorf("got %v, want %q, and no further start", err, tt.want)
			}
		})
	}
}
