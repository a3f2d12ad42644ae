// SPDX-License-Identifier: Apache-2.0

// Command count prints a line for every signal that reaches it, and ends with
// exit code 7 at SIGUSR2. Stop signals keep their default action.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	caught := make(chan os.Signal, 64)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPWR, syscall.SIGCONT, syscall.SIGWINCH)
	fmt.Printf("ready pid=%d ppid=%d.\n", os.Getpid(), os.Getppid())
	for sig := range caught {
		fmt.Printf("got %v.\n", sig)
		if sig == syscall.SIGUSR2 {
			os.Exit(7)
		}
	}
}
