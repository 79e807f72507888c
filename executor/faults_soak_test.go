//go:build soak

package executor_test

// soak says that tests run for as long as it takes: go test -tags soak -timeout 0.
const soak = true
