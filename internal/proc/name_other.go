//go:build !linux

package proc

// SetName sets the name that ps and top show for this process; the kernel keeps 15 bytes of it. It does nothing where the
// system has no such name.
func SetName(name string) {}
