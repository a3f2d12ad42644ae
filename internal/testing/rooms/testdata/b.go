// SPDX-License-Identifier: Apache-2.0

package testdata

func second() string { return third{}.name() }
