//go:build !soak

package faulttest_test

const soak = false
