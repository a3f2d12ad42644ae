// SPDX-License-Identifier: Apache-2.0

// Command racy has a race.
package main

func main() {
	n, done := 0, make(chan struct{})
	go func() {
		n++
		close(done)
	}()
	n++
	<-done
	println(n)
}
