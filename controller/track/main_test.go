// SPDX-License-Identifier: Apache-2.0

package track

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/internal/readers"
)

// asRank makes the test's own program say what it finds out about itself, as a
// rank that a launcher has started.
const asRank = "ATTUNE_TEST_RANK"

func TestMain(m *testing.M) {
	if label := os.Getenv(asRank); label != "" {
		if err := sayRank(label); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	readers.ServeIfAsked(Operations()...)
	goleak.VerifyTestMain(m)
}

// sayRank says which execution this process belongs to: one line and one write,
// since ranks share the launcher's output.
func sayRank(label string) error {
	d, err := Describe(nil, os.Getpid(), Event{})
	if err != nil {
		return err
	}
	defer d.Held.Close()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	rank := int32(-1)
	if d.Process.Rank != nil {
		rank = d.Process.GetRank()
	}
	_, err = fmt.Printf("rank %s %s %d %s\n", label, d.Process.GetJob().Key(), rank, host)
	return err
}
