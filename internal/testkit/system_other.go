//go:build !linux

package testkit

// adoptOrphans does nothing: only Linux has the means.
func adoptOrphans() error { return nil }

// addSystem adds nothing: this system shows neither children nor descriptors to a program.
func addSystem(map[holding]string) {}

// process is one child of this process.
type process struct {
	pid   int
	state string
}

// children returns nothing.
func children() []process { return nil }

func reapAdopted() {}

func killLeft(_, _ map[holding]string) {}

// Children returns nothing: this system does not show them.
func Children() []int { return nil }
