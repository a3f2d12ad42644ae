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
