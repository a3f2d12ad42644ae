// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"testing"
)

func TestNumbers(t *testing.T) {
	const data = "55e0e8b1a000-7ffd62624000 ---p 00000000 00:00 0    [rollup]\n\nRss:   14716 kB\nrchar: 18446744073709551615\ninactive_file 5\nOther: 7\n"
	var rss, read, inactive, missing uint64
	into := map[string]*uint64{"Rss": &rss, "rchar": &read, "inactive_file": &inactive, "Missing": &missing}
	if found, err := Numbers([]byte(data), into); found != 3 || err != nil || rss != 14716<<10 || read != 1<<64-1 || inactive != 5 || missing != 0 {
		t.Errorf("%d found, %v: %d, %d, %d, %d", found, err, rss, read, inactive, missing)
	}
	for _, bad := range []string{"Rss:\n", "Rss: many kB\n", "Rss: -1 kB\n", "Rss: 18014398509481984 kB\n", "rchar: 99999999999999999999\n"} {
		if _, err := Numbers([]byte(bad), into); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
