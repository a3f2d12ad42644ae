// SPDX-License-Identifier: Apache-2.0

// Collected says what its collector goes by: for each line, the percentage, and the
// heap's goal after a collection in bytes.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
)

func main() {
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			debug.SetGCPercent(n)
		}
		runtime.GC()
		samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/goal:bytes"}}
		metrics.Read(samples)
		fmt.Println(samples[0].Value.Uint64(), samples[1].Value.Uint64())
	}
}
