// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os/exec"
	"testing"
)

// Python is the path of an interpreter, or the test is skipped.
func Python(tb testing.TB) string {
	tb.Helper()
	return NeedCommand(tb, "python3", "python3")
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
