// SPDX-License-Identifier: Apache-2.0

//go:build !race

package hostile

const more = 1
