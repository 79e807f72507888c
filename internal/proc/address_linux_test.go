package proc_test

import "unsafe"

// addressOf returns a pointer as prctl takes it.
func addressOf(n *int32) uintptr { return uintptr(unsafe.Pointer(n)) }
