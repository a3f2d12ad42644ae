// SPDX-License-Identifier: Apache-2.0

package objfile

import "testing"

func TestEnvProgram(t *testing.T) {
	for argument, want := range map[string]string{
		"python3": "python3", "-S python3 -u": "python3", "-S A=b python3": "python3", "-S -i python3": "python3",
		"-S --unset=A sh": "sh", "-S A=${HOME}/lib python3": "python3",
		// What cannot be told.
		"": "", "-S -u A sh": "", "-S -iu A sh": "", "-S --unset A sh": "", "-S ${SHELL}": "", `-S "A=b c" sh`: "",
	} {
		if got := envProgram("/usr/bin/env", argument); got != want {
			t.Errorf("env %s runs %q, want %q", argument, got, want)
		}
	}
}
