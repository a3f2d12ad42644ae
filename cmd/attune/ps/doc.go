// SPDX-License-Identifier: Apache-2.0

// Package ps is `attune ps`: the processes that can be tuned.
package ps
