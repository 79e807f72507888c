//go:build !race

package testkit

// Slowdown stretches time limits for the race detector.
const Slowdown = 1
