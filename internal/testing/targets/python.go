// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"os/exec"
	"testing"
)

// Python is the path of an interpreter, or the test is skipped; in CI there must be one.
func Python(tb testing.TB) string {
	tb.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal("apt-get install python3")
		}
		tb.Skip(err)
	}
	return python
}

// StartScript is Start for a program in Python.
func StartScript(tb testing.TB, python, script string) *Target {
	tb.Helper()
	return StartCommand(tb, exec.Command(python, "-c", script))
}

// Evaluates is a program in Python that answers each line with its value, of gc and sys
// if need be.
const Evaluates = `
import gc, sys
print('ready', flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
`
