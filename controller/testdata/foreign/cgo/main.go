// SPDX-License-Identifier: Apache-2.0

// Goroutines that call C, which calls Go again, while the scheduler interrupts them
// by signals, and faults that become panics.
package main

/*
#include <stdlib.h>
#include <string.h>
extern int called(int);
static int through(int n) {
	char *p = malloc(100 + n % 1000);
	memset(p, n, 100);
	int sum = called(p[50] & 0x7f);
	free(p);
	return sum;
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
)

//export called
func called(n C.int) C.int { return n + 1 }

func fault(p *int) (caught int) {
	defer func() {
		if recover() != nil {
			caught = 1
		}
	}()
	return *p
}

func main() {
	var all sync.WaitGroup
	sums := make([]int, 16)
	for g := range sums {
		all.Go(func() {
			for i := range 600000 {
				sums[g] += int(C.through(C.int(i)))
				if i%100 == 0 {
					sums[g] += fault(nil)
				}
			}
		})
	}
	for range 20 {
		runtime.GC()
	}
	all.Wait()
	fmt.Println(sums)
}
