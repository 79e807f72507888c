//go:build !unix

package executor_test

// terminate is kill where there are no signals.
func terminate(pid int) { strike(pid) }
