//go:build !linux

package proc

import "fmt"

// Measurable says whether PrivateMemory works here.
const Measurable = false

// PrivateMemory would return how much memory a process shares with nobody.
func PrivateMemory(int) (int64, error) {
	return 0, fmt.Errorf("%w: the memory of a process", ErrUnsupported)
}
