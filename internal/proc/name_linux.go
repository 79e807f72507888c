package proc

import "os"

// SetName sets the name that ps and top show for this process; the kernel keeps 15 bytes of it. It does nothing where the
// system has no such name.
func SetName(name string) {
	// The file is that of the main thread, whichever thread this is; prctl would name the calling one.
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}
