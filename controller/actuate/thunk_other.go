// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package actuate

import (
	"fmt"
	"runtime"
)

func (i invocation) thunk() ([]byte, error) {
	return nil, fmt.Errorf("%w: texts and real numbers are not passed on %s yet", ErrRefused, runtime.GOARCH)
}

func mapCode(uint64, uint64) []byte { return nil } // nobody executes it

func exchangeCode(Word, []byte, []byte) []byte { return nil }

func flushCode(streamCall) []byte { return nil }

func switchCode(streamCall, Buffering, Buffering) []byte { return nil }

func bufferCode(uint64) []byte { return nil }

func unmapCode(uint64, uint64) []byte { return nil }
