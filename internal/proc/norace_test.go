//go:build !race

package proc_test

// slowdown stretches time limits for the race detector.
const slowdown = 1
