// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

// DrainRing hands over what is in a ring, and does not wait for more. It stops at an error.
// A sample is valid until handle returns.
func DrainRing(reader *ringbuf.Reader, handle func(sample []byte) error) error {
	reader.SetDeadline(time.Unix(1, 0))
	for record := (ringbuf.Record{}); ; {
		err := reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err == nil {
			err = handle(record.RawSample)
		}
		if err != nil {
			return err
		}
	}
}
