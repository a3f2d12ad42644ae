// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import (
	"strings"
	"testing"
)

// A new tunlet in Go builds, passes its own tests and the suite, and finds what
// it is about.
func TestNewTunletInGo(t *testing.T) {
	checkout := mustAbs(t, "../../..")
	feed, _, _ := strings.Cut(commandsOf(t, "../../../docs/tutorial/first-tunlet.md"), "./feed 2")
	said := typeIn(t, ownDir(t), "umask 022\n"+feed+`
attune tunlet new mine --sdk `+checkout+`
cd mine
go vet .
go test .
go build -o attune-tunlet-mine .
cd ..
attune tunlet test mine/attune-tunlet-mine
`+untilKept(t, "attune run --tunlet-dir mine -- ./feed 10 > /dev/null\n", "./feed"))
	for _, want := range []string{"made mine", "ok    does the same in every session", "kept      mine: batch 1 → 64"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
}

// The example in Python passes the suite, and finds what it is about.
func TestTunletInPython(t *testing.T) {
	dir := ownDir(t)
	checkout := mustAbs(t, "../../..")
	feed, _, _ := strings.Cut(commandsOf(t, "../../../docs/tutorial/first-tunlet.md"), "./feed 2")
	said := typeIn(t, dir, "umask 022\n"+feed+`
mkdir python
from=`+checkout+`/examples/python
cp $from/Makefile $from/*.py $from/attune-tunlet-* python
make -s -C python PROTO=`+checkout+`/proto
attune tunlet test python/attune-tunlet-small-writes
`+untilKept(t, "attune run --tunlet-dir python -- ./feed 10 > /dev/null\n", "./feed"))
	for _, want := range []string{"ok    does the same in every session", "kept      small-writes: batch 1 → 64"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "FAIL") {
		t.Errorf("a part of the suite failed:\n%s", said)
	}
}
